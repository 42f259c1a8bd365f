/* fuzz/fuzz_packages.c - a package's outer archive, a lock, and what apt prints, from anybody.
 *
 * The first byte chooses. Whatever is accepted must lie inside the input, and hold names that mean nothing to a shell
 * or a path. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "distro/apt.h"
#include "distro/deb.h"
#include "distro/packages.h"
#include "fuzz.h"

static void check_deb(const char *text, size_t size)
{
    px_auto_fd int fd = px_fd_memory("deb", text, size, 0);
    struct px_deb deb;
    if (px_deb_read(fd, size, "input", &deb, NULL) < 0)
        return;
    CHECK(deb.data_size > 0 && deb.data <= size && deb.data_size <= size - deb.data);
    CHECK(deb.control_size > 0 && deb.control <= size && deb.control_size <= size - deb.control);
}

static void check_list(struct px_packages *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct px_package *p = &list->items[i];
        CHECK(!strpbrk(p->name, " /'\"$`;\n_:=") && !strpbrk(p->version, " /'\"$`;\n_=") &&
              !strpbrk(p->arch, " /'\"$`;\n_:="));
        CHECK(*p->name && *p->name != '-' && *p->version && *p->arch && strlen(p->sha256.hex) == 64);
    }
    px_packages_done(list);
}

static void check_lock(const char *text, size_t size)
{
    struct px_packages list = {0};
    char *base = NULL, *arch = NULL;
    if (px_packages_read(text, size, &list, &base, &arch, NULL) < 0)
        return;
    CHECK(list.count > 0);
    check_list(&list);
    free(base);
    free(arch);
}

static void check_words(const char *text)
{
    struct px_packages list = {0};
    struct px_apt_mirrors mirrors = {0};
    px_auto_buf struct px_buf sources = PX_BUF(1 << 16), acquire = PX_BUF(1 << 20);
    const struct px_base_row *base = px_bases_find("debian-12");
    (void)px_apt_uris(text, &list);
    check_list(&list);
    CHECK(px_apt_host_mirrors(base, text, &mirrors) == 0);
    if (px_apt_sources(base, &mirrors, &sources) == 0) {
        size_t lines = 0;
        for (const char *at = px_buf_text(&sources); (at = strchr(at, '\n')); at++)
            lines++;
        CHECK(lines == 3);
    }
    px_apt_mirrors_done(&mirrors);
    px_apt_keep_acquire(text, &acquire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *text = malloc(size);
    CHECK(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 3 == 0)
        check_deb(text, size - 1);
    else if (data[0] % 3 == 1)
        check_lock(text, size - 1);
    else
        check_words(text);
    free(text);
    return 0;
}
