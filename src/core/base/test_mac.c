/* base/test_mac.c - HMAC-SHA256 against RFC 4231 and an independent implementation. */
#include "base/mac.h"

#include <string.h>

#include "harness/test.h"

static void check_mac(const void *key, size_t key_size, const char *text, size_t size, size_t step, const char *expected)
{
    struct px_mac mac;
    uint8_t whole[PX_MAC_SIZE] = {0}, out[PX_MAC_SIZE];
    char hex[PX_MAC_HEX];
    memcpy(whole, key, key_size);
    px_mac_begin(&mac, whole);
    for (size_t at = 0; at < size; at += step)
        px_mac_add(&mac, text + at, size - at < step ? size - at : step);
    px_mac_end(&mac, out);
    px_mac_hex(out, hex);
    ASSERT_STR(hex, expected);
}

TEST(texts_of_the_rfc)
{
    static const char what[] = "what do ya want for nothing?";
    char key[20], fifty[50];
    memset(key, 0x0b, sizeof key);
    memset(fifty, 0xdd, sizeof fifty);
    check_mac(key, 20, "Hi There", 8, 1, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_mac("Jefe", 4, what, sizeof what - 1, 5, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    check_mac(key, 20, fifty, 50, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

/* hmac.new(bytes(range(32)), b"x" * n, "sha256") of Python, around the edges of a block. */
TEST(lengths_around_a_block)
{
    static const struct {
        size_t size;
        const char *mac;
    } rows[] = {
        {0, "d38b42096d80f45f826b44a9d5607de72496a415d3f4a1a8c88e3bb9da8dc1cb"},
        {55, "37e3a063705c893eb8e0cc065f4bb4bb09e08967617b7ef0b5e550318ccc882b"},
        {56, "feb0960aa2c5196e22057827de25b0b897bd9d3299f109f86c8cd40f460648b9"},
        {63, "15cd7f6672c717f1add61ad2fec47389d85044b823fbf3fa87a22b68d4dd3bb2"},
        {64, "154147924bb4a7b7d6bea3ae21ad2f8fc6ddfc0bf0b8f3db05b9442438508598"},
        {65, "41a8277a7e4299b352788dd1acda7e69a320114f0659bc367ba8a200b3692db5"},
        {119, "d3503470218443c3c3627959ff0c2a3d10004537574f064ec9f1324fb2e6f777"},
        {120, "e341539f99aa3f1f6be70988fe6bbbb988b3822d9edcf6284211e4f224908bfc"},
        {128, "86ff9aca982c267f08c6e27b8e155957763ccc7573aa220104fa4fd8bd3a18ae"},
        {200, "7b48ae507721b7feb27d8403d20568ca6d1e003dba73751f869cae6163653c59"},
    };
    char text[200];
    uint8_t key[PX_MAC_SIZE];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < PX_MAC_SIZE; i++)
        key[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t step = 1; step < 130; step += 43)
            check_mac(key, sizeof key, text, rows[i].size, step, rows[i].mac);
}

TEST(equal_is_equal)
{
    ASSERT(px_mac_equal("abc", "abc", 3) && !px_mac_equal("abc", "abd", 3) && !px_mac_equal("bbc", "abc", 3));
}
