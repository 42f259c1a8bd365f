/* base/test_pass.c - descriptors over sockets: all of them, none of them, too many of them. */
#include "base/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "harness/test.h"

static void make_ends(int ends[2])
{
    ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
}

static void make_files(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ASSERT_OK(fds[i] = px_fd_memory("passed", &(char){(char)('a' + i)}, 1, 0));
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)px_fd_close(fds[i]);
}

TEST(as_many_as_go_with_one_message_arrive_in_order)
{
    int ends[2], sent[PX_PASS_MAX], got[PX_PASS_MAX + 1];
    const struct iovec parts[2] = {{.iov_base = (void *)"two ", .iov_len = 4}, {.iov_base = (void *)"parts", .iov_len = 6}};
    char text[32] = "";
    struct px_passed passed;
    make_ends(ends);
    make_files(sent, PX_PASS_MAX);
    ASSERT_OK(px_pass_send_parts(ends[0], parts, 2, sent, PX_PASS_MAX, 0));
    ASSERT_EQ(px_pass_receive(ends[1], text, sizeof text, MSG_DONTWAIT, got, PX_PASS_MAX + 1, &passed), 10);
    ASSERT_STR(text, "two parts");
    ASSERT_EQ(passed.count, PX_PASS_MAX);
    ASSERT_EQ(passed.flags & (MSG_TRUNC | MSG_CTRUNC), 0);
    ASSERT_EQ(passed.pid, 0);
    ASSERT_EQ(got[PX_PASS_MAX], -EBADF);
    for (int i = 0; i < PX_PASS_MAX; i++) {
        char byte = 0;
        ASSERT_EQ(pread(got[i], &byte, 1, 0), 1);
        ASSERT_EQ(byte, 'a' + i);
        ASSERT(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
    }
    close_all(got, PX_PASS_MAX);
    close_all(sent, PX_PASS_MAX);
    close_all(ends, 2);
}

TEST(more_than_the_kernel_is_asked_for_is_refused)
{
    int ends[2], fds[PX_PASS_MAX + 1] = {0};
    make_ends(ends);
    ASSERT_EQ(px_pass_send(ends[0], "x", 1, fds, PX_PASS_MAX + 1, 0), -E2BIG);
    close_all(ends, 2);
}

/* The harness fails a test that leaves a descriptor open: what there is no room for must be closed. */
TEST(what_there_is_no_room_for_is_closed)
{
    int ends[2], sent[3], got;
    char byte;
    struct px_passed passed;
    make_ends(ends);
    make_files(sent, 3);
    ASSERT_OK(px_pass_send(ends[0], "x", 1, sent, 3, 0));
    ASSERT_OK(px_pass_send(ends[0], "y", 1, sent, 3, 0));
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, 0, &got, 1, &passed), 1);
    ASSERT_EQ(passed.count, 3);
    ASSERT_EQ(pread(got, &byte, 1, 0), 1);
    ASSERT_EQ(byte, 'a');
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, 0, NULL, 0, NULL), 1);
    ASSERT_EQ(byte, 'y');
    close_all(sent, 3);
    close_all(ends, 2);
    (void)px_fd_close(got);
}

TEST(a_message_without_any_a_full_socket_and_the_end)
{
    int ends[2], got = 0, r;
    char byte;
    make_ends(ends);
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, MSG_DONTWAIT, &got, 1, NULL), -EAGAIN);
    ASSERT_EQ(got, -EBADF);
    ASSERT_OK(px_pass_send(ends[0], "x", 1, NULL, 0, 0));
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, 0, &got, 1, NULL), 1);
    ASSERT_EQ(got, -EBADF);
    while ((r = px_pass_send(ends[0], "x", 1, NULL, 0, MSG_DONTWAIT)) == 0)
        ;
    ASSERT_EQ(r, -EAGAIN);
    (void)px_fd_close(ends[0]);
    while ((r = (int)px_pass_receive(ends[1], &byte, 1, 0, NULL, 0, NULL)) == 1)
        ;
    ASSERT_EQ(r, 0);
    ASSERT_EQ(px_pass_send(ends[1], "x", 1, NULL, 0, 0), -EPIPE);      /* and no signal */
    (void)px_fd_close(ends[1]);
}

TEST(what_is_too_long_says_so_and_so_does_the_sender)
{
    int ends[2], sent[1], got;
    const int on = 1;
    char byte;
    struct px_passed passed;
    make_ends(ends);
    make_files(sent, 1);
    ASSERT_OK(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    ASSERT_OK(px_pass_send(ends[0], "long", 4, sent, 1, 0));
    ASSERT_EQ(px_pass_receive(ends[1], &byte, 1, 0, &got, 1, &passed), 1);
    ASSERT(passed.flags & MSG_TRUNC);
    ASSERT_EQ(passed.pid, getpid());
    ASSERT_EQ(passed.count, 1);
    ASSERT_OK(got);
    close_all(ends, 2);
    close_all(sent, 1);
    (void)px_fd_close(got);
}
