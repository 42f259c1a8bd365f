#include "net/rule.h"

#include <string.h>

#include "base/text.h"
#include "harness/test.h"

static struct px_address address(const char *text)
{
    struct px_address a;
    ASSERT_EQ(px_address_parse(text, &a), 0);
    return a;
}

static struct px_net_rule rule(const char *text)
{
    struct px_net_rule r;
    if (px_net_rule_parse(text, false, &r) < 0)
        ASSERT_STR(text, "a rule");
    return r;
}

TEST(names_are_cleaned_or_refused)
{
    static const char *const bad[] = {"", ".", "a..b", "-a.test", "a-.test", "a_b.test", "a b", "a@b", "a%00b", "127.0.0.1", "127.1", "1",
                                      "0x7f.1", "a.0x7f", "a.1", "a\r\nb", "\xc3\xa4.test", "*.a", "a.test.."};
    char out[PX_NET_NAME_MAX], label[80];
    ASSERT_EQ(px_net_name_clean("GOOD.Test.", 10, out), 0);
    ASSERT_STR(out, "good.test");
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        ASSERT(px_net_name_clean(bad[i], strlen(bad[i]), out) < 0);
    ASSERT(px_net_name_clean("a\0b", 3, out) < 0);
    memset(label, 'a', sizeof label);
    ASSERT_EQ(px_net_name_clean(label, 63, out), 0);
    ASSERT(px_net_name_clean(label, 64, out) < 0);
}

TEST(rules_are_read_strictly)
{
    static const char *const bad[] = {"", ":", "a:", "a:0", "a:65536", "a:b", "*a.test", "**", "*.", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "[10.0.0.1]:80",
                                      "[::1", "[::1]80", "::1/129", "2001:db8::1/64", "a/24", "http://a", "a.test/", "1.2.3", "01.2.3.4"};
    struct px_net_rule r;
    for (size_t i = 0; i < PX_COUNT_OF(bad); i++)
        if (px_net_rule_parse(bad[i], false, &r) == 0)
            ASSERT_STR(bad[i], "refused");
    r = rule("[2001:db8::7]:443");
    ASSERT(r.bits == 128 && r.port == 443 && !r.name[0]);
    r = rule("2001:db8::/32");
    ASSERT(r.bits == 32 && r.port == 0);
    r = rule("10.0.0.0/8:*");
    ASSERT(r.bits == 104 && r.any_port);
}

TEST(patterns_match_whole_labels)
{
    struct px_net_rule r = rule("*.good.test");
    ASSERT(px_net_rule_name(&r, "a.good.test") && px_net_rule_name(&r, "a.b.good.test"));
    ASSERT(!px_net_rule_name(&r, "good.test") && !px_net_rule_name(&r, "evilgood.test") && !px_net_rule_name(&r, "good.test.evil"));
    r = rule("good.test");
    ASSERT(px_net_rule_name(&r, "good.test") && !px_net_rule_name(&r, "a.good.test"));
    ASSERT(px_net_rule_port(&r, 80) && px_net_rule_port(&r, 443) && !px_net_rule_port(&r, 8080));
}

/* G4: whatever form an address has. */
TEST(special_addresses_are_known)
{
    static const char *const special[] = {"0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1",
                                          "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1",
                                          "::ffff:10.0.0.1", "::7f00:1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1",
                                          "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:1::1", "100::1"};
    static const char *const open[] = {"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "169.253.1.1", "203.0.113.7", "2001:db8::1", "2606:4700::1111",
                                       "64:ff9b::808:808", "2002:808:808::1"};
    for (size_t i = 0; i < PX_COUNT_OF(special); i++) {
        struct px_address a = address(special[i]);
        if (!px_address_special(&a))
            ASSERT_STR(special[i], "special");
    }
    for (size_t i = 0; i < PX_COUNT_OF(open); i++) {
        struct px_address a = address(open[i]);
        if (px_address_special(&a))
            ASSERT_STR(open[i], "open");
    }
}

static enum px_net_verdict decide(const char *allow, const char *deny, const char *name, const char *to, uint16_t port, bool own)
{
    struct px_net_rule a = {0}, d = {0};
    struct px_address where = address(to);
    struct px_net_rules rules = {.allow = &a, .deny = &d, .allow_count = allow != NULL, .deny_count = deny != NULL, .listed = allow != NULL};
    if (allow)
        a = rule(allow);
    if (deny)
        ASSERT_EQ(px_net_rule_parse(deny, true, &d), 0);
    return px_net_rules_connect(&rules, name, &where, port, own);
}

TEST(decisions)
{
    static const struct {
        const char *allow, *deny, *name, *to;
        uint16_t port;
        bool own;
        enum px_net_verdict want;
    } rows[] = {
        {NULL, NULL, NULL, "1.1.1.1", 9999, false, PX_NET_YES},
        {NULL, NULL, "a.test", "10.0.0.1", 80, false, PX_NET_SPECIAL},
        {NULL, NULL, NULL, "1.1.1.1", 80, true, PX_NET_SPECIAL},
        {NULL, "a.test", "a.test", "1.1.1.1", 80, false, PX_NET_DENIED},
        {NULL, "1.1.1.0/24", "a.test", "1.1.1.1", 22, false, PX_NET_DENIED},
        {"*", "a.test", "a.test", "1.1.1.1", 80, false, PX_NET_DENIED},
        {"a.test", NULL, "a.test", "1.1.1.1", 443, false, PX_NET_YES},
        {"a.test", NULL, "a.test", "1.1.1.1", 22, false, PX_NET_NOT_LISTED},
        {"a.test", NULL, NULL, "1.1.1.1", 443, false, PX_NET_NOT_LISTED},
        {"a.test", NULL, "a.test", "127.0.0.1", 443, false, PX_NET_SPECIAL},
        {"a.test", NULL, "a.test", "169.254.169.254", 80, false, PX_NET_SPECIAL},
        {"169.254.169.254", NULL, NULL, "169.254.169.254", 80, false, PX_NET_YES},
        {"10.0.0.0/8:5432", NULL, NULL, "10.2.3.4", 5432, false, PX_NET_YES},
        {"10.0.0.0/8:5432", NULL, NULL, "10.2.3.4", 80, false, PX_NET_NOT_LISTED},
        {"127.0.0.1:*", NULL, NULL, "127.0.0.1", 80, false, PX_NET_SPECIAL},
        {"0.0.0.0/0:*", NULL, NULL, "10.0.0.1", 80, false, PX_NET_SPECIAL},
        {"0.0.0.0/0:*", NULL, NULL, "1.1.1.1", 25, false, PX_NET_YES},
        {"::/0", NULL, NULL, "1.1.1.1", 80, false, PX_NET_NOT_LISTED},
        {"::/0", NULL, NULL, "fd00::1", 80, false, PX_NET_SPECIAL},
        {"*", NULL, NULL, "1.1.1.1", 80, false, PX_NET_YES},
        {"*", NULL, "a.test", "10.0.0.1", 80, false, PX_NET_SPECIAL},
    };
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++)
        ASSERT_EQ((int)decide(rows[i].allow, rows[i].deny, rows[i].name, rows[i].to, rows[i].port, rows[i].own) * 100 + (int)i,
                  (int)rows[i].want * 100 + (int)i);
}

/* A host of the caller's own settings may have a private address; loopback and link-local addresses stay closed. */
TEST(hosts_of_the_callers_own)
{
    static const struct {
        const char *name, *to;
        uint16_t port;
        bool own;
        enum px_net_verdict want;
    } rows[] = {
        {"index.test", "1.1.1.1", 443, false, PX_NET_YES},          {"index.test", "10.2.3.4", 443, false, PX_NET_YES},
        {"index.test", "100.64.1.1", 443, false, PX_NET_YES},       {"index.test", "fd00::1", 443, false, PX_NET_YES},
        {"index.test", "1.1.1.1", 443, true, PX_NET_YES},           {"index.test", "127.0.0.1", 443, false, PX_NET_SPECIAL},
        {"index.test", "::1", 443, false, PX_NET_SPECIAL},          {"index.test", "169.254.169.254", 443, false, PX_NET_SPECIAL},
        {"index.test", "fe80::1", 443, false, PX_NET_SPECIAL},      {"index.test", "0.0.0.0", 443, false, PX_NET_SPECIAL},
        {"index.test", "64:ff9b::7f00:1", 443, false, PX_NET_SPECIAL}, {"index.test", "10.2.3.4", 80, false, PX_NET_NOT_LISTED},
        {"other.test", "10.2.3.4", 443, false, PX_NET_NOT_LISTED},  {"other.test", "1.1.1.1", 443, false, PX_NET_NOT_LISTED},
        {NULL, "10.2.3.4", 443, false, PX_NET_NOT_LISTED},          {NULL, "1.1.1.1", 443, false, PX_NET_NOT_LISTED},
    };
    struct px_net_rule rule;
    ASSERT_OK(px_net_rule_parse("index.test:443", false, &rule));
    rule.own = true;
    const struct px_net_rules rules = {.allow = &rule, .allow_count = 1, .listed = true};
    for (size_t i = 0; i < PX_COUNT_OF(rows); i++) {
        struct px_address a;
        ASSERT_OK(px_address_parse(rows[i].to, &a));
        ASSERT_EQ((int)px_net_rules_connect(&rules, rows[i].name, &a, rows[i].port, rows[i].own) * 100 + (int)i,
                  (int)rows[i].want * 100 + (int)i);
    }
    ASSERT(px_net_rules_own(&rules, "index.test", 443) && !px_net_rules_own(&rules, "index.test", 80));
    ASSERT(!px_net_rules_proxy(&rules, "index.test", 443));
    rule.proxy = true;
    ASSERT(px_net_rules_proxy(&rules, "index.test", 443) && !px_net_rules_proxy(&rules, "index.test", 80));
}

/* A rule denies an address in every spelling, of the rule and of the connection; it allows what it spells. */
TEST(spellings_are_one_address)
{
    static const char *const same[] = {"203.0.113.11", "::ffff:203.0.113.11", "64:ff9b::cb00:710b", "2002:cb00:710b::1", "2002:cb00:710b:7::", "::203.0.113.11"};
    static const char *const others[] = {"203.0.113.12", "64:ff9b::cb00:710c", "2002:cb00:710c::1", "64:ff9b:2::cb00:710b", "2003:cb00:710b::1", "2001:db8::cb00:710b"};
    static const char *const networks[] = {"203.0.113.0/24", "64:ff9b::cb00:7100/120", "2002:cb00:7100::/40", "0.0.0.0/0", "2002:cb00:710b::/48"};
    for (size_t i = 0; i < PX_COUNT_OF(same); i++) {
        struct px_address one = address(same[0]), a = address(same[i]);
        ASSERT(px_address_equal(&one, &a) && px_address_equal(&a, &one));
        for (size_t j = 0; j < PX_COUNT_OF(same); j++)
            ASSERT_EQ(decide(NULL, same[i], NULL, same[j], 80, false), PX_NET_DENIED);
        for (size_t j = 0; j < PX_COUNT_OF(others); j++)
            ASSERT(decide(NULL, same[i], NULL, others[j], 80, false) != PX_NET_DENIED);
        for (size_t j = 0; j < PX_COUNT_OF(networks); j++)
            ASSERT_EQ(decide(NULL, networks[j], NULL, same[i], 80, false), PX_NET_DENIED);
        ASSERT_EQ(decide(same[0], NULL, NULL, same[i], 80, false), i < 2 ? PX_NET_YES : PX_NET_NOT_LISTED);
    }
    /* A network that is larger than what carries IPv4, or all of it, is no network of IPv4. */
    ASSERT_EQ(decide(NULL, "64:ff9b::/96", NULL, same[0], 80, false), PX_NET_YES);
    ASSERT_EQ(decide(NULL, "2002::/16", NULL, same[0], 80, false), PX_NET_YES);
    ASSERT_EQ(decide(NULL, "64:ff9b::/96", NULL, same[2], 80, false), PX_NET_DENIED);
    ASSERT_EQ(decide(NULL, "::/0", NULL, same[3], 80, false), PX_NET_DENIED);
    ASSERT_EQ(decide(NULL, "::1", NULL, "1.2.3.4", 80, false), PX_NET_YES);
    ASSERT_EQ(decide(NULL, NULL, NULL, same[5], 80, false), PX_NET_SPECIAL);
}

TEST(denied_names_are_asked_for_by_port)
{
    struct px_net_rule deny[2];
    ASSERT_EQ(px_net_rule_parse("*.evil.test:8080", true, &deny[0]), 0);
    ASSERT_EQ(px_net_rule_parse("203.0.113.11", true, &deny[1]), 0);
    struct px_net_rules rules = {.deny = deny, .deny_count = 2};
    ASSERT(px_net_rules_deny_names(&rules, 8080) && !px_net_rules_deny_names(&rules, 80));
    ASSERT(px_net_rules_denied(&rules, "a.evil.test", 8080) && !px_net_rules_denied(&rules, "a.evil.test", 80));
    ASSERT(!px_net_rules_denied(&rules, "evil.test", 8080));
    ASSERT_EQ(px_net_rule_parse("*", true, &deny[0]), 0);
    ASSERT(!px_net_rules_deny_names(&rules, 80) && !px_net_rules_denied(&rules, "localhost", 80));
}

/* The fence around a device is made of whole networks: it may close more than the relay does, never less. */
TEST(special_ranges_close_what_is_special)
{
    static const char *const special[] = {"127.0.0.1", "10.9.9.9", "172.31.255.255", "100.127.0.1", "169.254.169.254", "198.19.255.255", "224.0.0.1", "255.255.255.255",
                                          "::1", "64:ff9b::a9fe:a9fe", "2002:a00:1::1", "2001::1", "fd00:ec2::254", "fe80::1", "ff02::1", "::7f00:1", "4000::1"};
    static const char *const open[] = {"203.0.113.10", "172.32.0.1", "100.128.0.1", "198.20.0.1", "223.255.255.255", "2001:db8::1", "2a00::1", "3fff::1"};
    for (size_t i = 0; i < PX_COUNT_OF(special) + PX_COUNT_OF(open); i++) {
        bool closed = i < PX_COUNT_OF(special), found = false;
        struct px_address network, a = address(closed ? special[i] : open[i - PX_COUNT_OF(special)]);
        unsigned bits;
        for (size_t j = 0; px_address_special_range(j, &network, &bits); j++)
            found = found || px_address_within(&a, &network, bits);
        if (found != closed)
            FAIL("%s", closed ? special[i] : open[i - PX_COUNT_OF(special)]);
    }
}
