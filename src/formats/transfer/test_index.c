/* transfer/test_index.c - the hosts in the user's settings, and which of them a box and a lock may use. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/text.h"
#include "harness/test.h"
#include "net/rule.h"
#include "transfer/index.h"

static bool has(const struct px_index *x, const char *url)
{
    struct px_url_place place;
    ASSERT_OK(px_url_place(url, &place));
    return px_index_has(x, &place);
}

TEST(hosts_are_read_out_of_settings)
{
    px_auto_free struct px_index *x = calloc(1, sizeof *x);
    ASSERT(x);
    ASSERT_OK(px_index_add_text(x, "index-url = https://user:p%40w@Pypi.Example/simple extra='http://10.1.2.3:8080/x',https://b.example:444"));
    ASSERT_OK(px_index_add_text(x, "url=\"http://[::1]:3141/root\" ftp://c.example/ https:// https://user@/ git+https://d.example/r.git ://e.example"));
    ASSERT_OK(px_index_add_host(x, "127.0.0.1:5000", 443));
    ASSERT_OK(px_index_add_host(x, "f.example", 8443));
    ASSERT_OK(px_index_add_host(x, "bad host", 443));
    ASSERT_EQ(x->count, 7);
    ASSERT(has(x, "https://pypi.example/a") && has(x, "https://10.1.2.3:8080/") && has(x, "https://b.example:444/"));
    ASSERT(has(x, "http://localhost:3141/") && has(x, "http://127.0.0.1:3141/") && has(x, "http://[::1]:5000/"));
    ASSERT(has(x, "https://d.example/") && has(x, "https://f.example:8443/"));
    ASSERT(!has(x, "https://pypi.example:8443/") && !has(x, "https://b.example/") && !has(x, "https://c.example/"));
    ASSERT(!has(x, "http://127.0.0.1:80/") && !has(x, "https://10.1.2.3/") && !has(x, "https://e.example/"));
    ASSERT(!has(x, "https://evil-pypi.example/") && !has(x, "https://pypi.example.org/"));
}

TEST(a_box_gets_rules_and_ports)
{
    px_auto_free struct px_index *x = calloc(1, sizeof *x);
    px_auto_free struct px_net_own *net = calloc(1, sizeof *net);
    ASSERT(x && net);
    ASSERT_OK(px_index_add_text(x, "https://a.example/ http://localhost:8080/ http://[2001:db8::7]:9/ http://127.0.0.1:8081/"));
    ASSERT_OK(px_index_net(x, net));
    ASSERT_EQ(net->ports_count, 2);
    ASSERT_EQ(net->ports[0], 8080);
    ASSERT_EQ(net->ports[1], 8081);
    ASSERT_EQ(net->rules_count, 2);
    ASSERT(net->rules[0].own && px_equal(net->rules[0].name, "a.example") && net->rules[0].port == 443);
    ASSERT(net->rules[1].own && net->rules[1].name[0] == '\0' && net->rules[1].port == 9);
}

TEST(variables_say_which_hosts)
{
    px_auto_free struct px_index *x = NULL;
    struct px_err e = {0};
    ASSERT_OK(setenv("HOME", "/nonexistent", 1));
    ASSERT_OK(unsetenv("XDG_CONFIG_HOME"));
    ASSERT_OK(unsetenv("PIP_NO_INDEX"));
    ASSERT_OK(unsetenv("UV_NO_INDEX"));
    ASSERT_OK(setenv("PX_INDEX_HOSTS", "one.example two.example:8443, http://127.0.0.1:7/", 1));
    ASSERT_OK(setenv("https_proxy", "proxy.example:3128", 1));
    ASSERT_OK(setenv("NO_PROXY", "inside.example", 1));
    ASSERT_OK(setenv("PIP_EXTRA_INDEX_URL", "https://three.example/simple", 1));
    ASSERT_OK(setenv("OTHER_URL", "https://four.example/", 1));
    ASSERT_OK(px_index_load(&x, &e));
    ASSERT(has(x, "https://pypi.org/") && has(x, "https://files.pythonhosted.org/x") && has(x, "https://three.example/"));
    ASSERT(has(x, "https://one.example/") && has(x, "https://two.example:8443/") && has(x, "http://localhost:7/"));
    ASSERT(has(x, "https://proxy.example:3128/") && !has(x, "https://inside.example/") && !has(x, "https://four.example/"));
    ASSERT(!x->whole);
    for (size_t i = 0; i < x->count; i++)
        ASSERT_EQ(x->rows[i].proxy, px_equal(x->rows[i].place.host, "proxy.example"));
    free(px_take(&x));
    px_auto_fd int dir = px_test_dir();
    char path[PATH_MAX];
    ASSERT(px_fmt(path, sizeof path, "%s/pip.conf", px_test_dir_path()) >= 0);
    ASSERT_OK(setenv("PIP_CONFIG_FILE", path, 1));
    static const struct {
        const char *text;
        bool usual, five;
    } files[] = {{"[global]\nno-index = true\nfind-links = https://five.example/\n", false, true},
                 {"[global]\n  no-index=1\n", false, false},
                 {"[global]\nno-index = false\nindex-url = https://five.example/simple\n", true, true},
                 {"#no-index = true\n; index-url = https://five.example/simple\n\n", true, false}};
    for (size_t i = 0; i < PX_COUNT_OF(files); i++) {
        px_auto_fd int fd = openat(dir, "pip.conf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        ASSERT_OK(px_write_full(fd, files[i].text, strlen(files[i].text)));
        ASSERT_OK(px_index_load(&x, &e));
        ASSERT_EQ(has(x, "https://pypi.org/"), files[i].usual);
        ASSERT_EQ(has(x, "https://five.example/"), files[i].five);
        free(px_take(&x));
    }
    ASSERT_OK(setenv("PIP_NO_INDEX", "1", 1));
    ASSERT_OK(setenv("PX_INDEX_NET", "host", 1));
    ASSERT_OK(px_index_load(&x, &e));
    ASSERT(!has(x, "https://pypi.org/") && x->whole);
}
