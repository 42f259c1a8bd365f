/* fuzz/fuzz_rule.c - what --allow-net takes. */
#include <string.h>

#include "fuzz.h"
#include "net/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct px_net_rule rule;
    char *text = fuzz_text(data, size), again[PX_NET_NAME_MAX];
    if (px_net_rule_parse(text, false, &rule) == 0) {
        bool name = rule.name[0] && strcmp(rule.name, "*") != 0;
        CHECK(!name || (px_net_name_clean(rule.name, strlen(rule.name), again) == 0 && strcmp(rule.name, again) == 0));
        CHECK(rule.name[0] || rule.bits <= 128);
        CHECK(rule.name[0] || px_net_rule_address(&rule, &rule.address));
        /* The one form of its network is among what it denies, and the other way round. */
        unsigned bits = rule.bits;
        struct px_address plain = px_address_plain(&rule.address, &bits);
        CHECK(rule.name[0] || (px_address_reaches(&plain, &rule.address, rule.bits) && px_address_reaches(&rule.address, &plain, bits)));
        /* A rule never opens the host's loopback. */
        struct px_address loopback = px_address_v4(0x7f000001);
        struct px_net_rules rules = {.allow = &rule, .allow_count = 1, .listed = true};
        for (uint32_t port = 1; port < 65536; port += 79)
            CHECK(px_net_rules_connect(&rules, "good.test", &loopback, (uint16_t)port, false) != PX_NET_YES);
    }
    free(text);
    return 0;
}
