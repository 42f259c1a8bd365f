/* What a running box's network can be told. No packet leaves this machine: what is refused is refused before that. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <px/px.h>

#include "base/err.h"
#include "base/fd.h"
#include "harness/test.h"

static const char knock[] = "import socket\ntry: socket.create_connection(('192.0.2.7', 80), timeout=30).recv(1)\nexcept OSError: pass";
static const char serve[] = "import socket\ns = socket.create_server(('127.0.0.1', 8080))\nc, _ = s.accept()\nc.sendall(b'served')\nc.close()";

static bool has_python(void)
{
    return access("/usr/bin/python3", X_OK) == 0;
}

static struct px_box *start_home(const char *field, const char *value)
{
    struct px_policy *policy = NULL;
    struct px_box *home = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_policy_new(NULL, &policy, &e), e);
    ASSERT_PX(px_policy_set(policy, field, value, &e), e);
    ASSERT_PX(px_box_stay(policy, &home, &e), e);
    px_policy_free(policy);
    return home;
}

static struct px_box *start_command(struct px_box *home, const char *code)
{
    const char *argv[] = {"python3", "-c", code, NULL};
    struct px_policy *policy = NULL;
    struct px_box *box = NULL;
    struct px_err e = {0};
    ASSERT_PX(px_policy_new(NULL, &policy, &e), e);
    ASSERT_PX(px_box_exec(home, policy, argv, NULL, &box, &e), e);
    px_policy_free(policy);
    return box;
}

/* The rule by which a connection is refused now. */
static void check_rule(struct px_box *home, const char *rule)
{
    struct px_err e = {0};
    struct px_box *box = start_command(home, knock);
    ASSERT_PX(px_box_wait(box, &e), e);
    const struct px_result *r = px_box_result(box);
    ASSERT_EQ(r->denials_count, 1);
    ASSERT_STR(r->denials[0].target, "192.0.2.7:80");
    ASSERT_STR(r->denials[0].rule, rule);
    px_box_free(box);
}

TEST(rules_change_while_the_box_runs)
{
    struct px_err e = {0};
    if (!has_python())
        SKIP("there is no python3");
    struct px_box *home = start_home("allow-net", "good.test");
    check_rule(home, "allow-net");
    ASSERT_PX(px_box_network(home, "deny-net", "192.0.2.0/24", &e), e);
    check_rule(home, "deny-net");
    ASSERT_PX(px_box_network(home, "deny-net", NULL, &e), e);
    check_rule(home, "allow-net");
    ASSERT_PX(px_box_network(home, "allow-net", NULL, &e), e);
    check_rule(home, "allow-net");      /* an empty list allows nothing */
    px_box_free(home);
}

TEST(an_open_network_can_be_narrowed)
{
    struct px_err e = {0};
    if (!has_python())
        SKIP("there is no python3");
    struct px_box *home = start_home("net", "outbound");
    ASSERT_PX(px_box_network(home, "allow-net", "good.test", &e), e);
    check_rule(home, "allow-net");
    px_box_free(home);
}

/* A port that is free a moment long; the socket that found it is closed. */
static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    px_auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(fd, (struct sockaddr *)&at, len), 0);
    ASSERT_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static bool is_served(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char got[8] = "";
    px_auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && px_read_full(fd, got, 6) == 6 && strcmp(got, "served") == 0;
}

TEST(ports_are_published_while_the_box_runs)
{
    struct px_err e = {0};
    char text[32];
    if (!has_python())
        SKIP("there is no python3");
    struct px_box *home = start_home("allow-net", "good.test");
    struct px_box *box = start_command(home, serve);
    uint16_t port = free_port();
    (void)snprintf(text, sizeof text, "%u:8080", port);
    ASSERT_PX(px_box_network(home, "publish", text, &e), e);
    bool served = false;
    for (int i = 0; i < 3000 && !served; i++) {         /* the server in the box may still be on its way */
        served = is_served(port);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ASSERT(served);
    ASSERT_EQ(px_box_network(home, "publish", text, &e), -1);
    ASSERT_EQ(e.code, PX_E_PORT);
    px_box_free(box);
    px_box_free(home);
}

TEST(what_cannot_be_changed)
{
    struct px_err e = {0};
    struct px_box *home = start_home("net", "outbound"), *plain = start_home("net", "loopback");
    ASSERT_EQ(px_box_network(home, "allow-net", "127.1", &e), -1);
    ASSERT_EQ(e.code, PX_E_VALUE);
    ASSERT_EQ(px_box_network(home, "publish", NULL, &e), -1);
    ASSERT_EQ(px_box_network(home, "net", "host", &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    ASSERT_EQ(px_box_network(plain, "allow-net", "good.test", &e), -1);
    ASSERT_EQ(e.code, PX_E_USAGE);
    for (int i = 0; i < 256; i++)
        ASSERT_PX(px_box_network(home, "deny-net", "good.test", &e), e);
    ASSERT_EQ(px_box_network(home, "deny-net", "good.test", &e), -1);
    ASSERT_EQ(e.code, PX_E_LIMIT);
    px_box_free(home);
    px_box_free(plain);
}
