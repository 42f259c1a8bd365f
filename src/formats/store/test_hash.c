#include "store/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* FIPS 180-2, B.1 */
static const char million[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";    /* B.3 */

TEST(known_answers)
{
    struct px_oid oid;
    struct px_hash h;

    ASSERT_OK(px_hash_bytes("abc", 3, &oid));
    ASSERT_STR(oid.hex, abc);
    px_hash_begin(&h);
    for (int i = 0; i < 1000; i++) {
        char a[1000];
        __builtin_memset(a, 'a', sizeof a);
        px_hash_add(&h, a, sizeof a);
    }
    ASSERT_OK(px_hash_end(&h, &oid));
    ASSERT_STR(oid.hex, million);
    px_hash_drop(&h);
}

TEST(a_file_is_hashed_from_its_start_up_to_a_bound)
{
    px_auto_fd int fd = px_fd_memory("test", "abc", 3, 0);
    struct px_oid oid;
    uint64_t size = 0;
    char byte;

    ASSERT_EQ(read(fd, &byte, 1), 1);
    ASSERT_OK(px_hash_fd(fd, 3, &oid, &size));
    ASSERT_STR(oid.hex, abc);
    ASSERT_EQ(size, 3);
    ASSERT_EQ(px_hash_fd(fd, 2, &oid, &size), -EFBIG);
    ASSERT_EQ(read(fd, &byte, 1), 1);           /* the file offset is unchanged */
    ASSERT_EQ(byte, 'b');
    px_auto_fd int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(px_hash_fd(dir, 2, &oid, &size), -EISDIR);
}

TEST(only_an_oid_is_an_oid)
{
    static const char *const bad[] = {
        "",
        "ba",
        "../ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015adf",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a ",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };
    struct px_oid oid, same;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERT_EQ(px_hash_oid_parse(bad[i], false, &oid), -EINVAL);
    ASSERT_EQ(px_hash_oid_parse(NULL, false, &oid), -EINVAL);
    ASSERT_EQ(px_hash_oid_parse(abc, true, &oid), -EINVAL);
    ASSERT_OK(px_hash_oid_parse(abc, false, &oid));
    ASSERT_OK(px_hash_oid_parse(bad[7], true, &same));
    ASSERT(px_hash_oid_equal(&oid, &same));
}
