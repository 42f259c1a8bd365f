#include "helpers/net/dns.h"

#include <errno.h>
#include <string.h>

#include "harness/test.h"

static size_t make_query(uint8_t *out)
{
    return px_dns_query(0x1234, "good.test", PX_DNS_A, out);
}

TEST(questions_are_read)
{
    uint8_t message[PX_DNS_MESSAGE_MAX];
    struct px_dns_question q;
    size_t n = make_query(message);
    ASSERT_EQ(px_dns_read_question(message, n, &q), 0);
    ASSERT_STR(q.name, "good.test");
    ASSERT(q.id == 0x1234 && q.type == PX_DNS_A && q.internet && q.clean && q.recursion);
    for (size_t i = 0; i < 12 + q.raw_len; i++)         /* cut anywhere within the question it is none */
        ASSERT_EQ(px_dns_read_question(message, i, &q), -EBADMSG);
    message[2] = 0x80;
    ASSERT_EQ(px_dns_read_question(message, n, &q), -EBADMSG);
}

TEST(a_dot_in_a_label_is_not_two_labels)
{
    static const uint8_t query[] = "ab\1\0\0\1\0\0\0\0\0\0\x09good.test\0\0\1\0\1";
    struct px_dns_question q;
    ASSERT_EQ(px_dns_read_question(query, sizeof query - 1, &q), 0);
    ASSERT(!q.clean);
}

TEST(answers_hold_one_address)
{
    uint8_t message[PX_DNS_MESSAGE_MAX], reply[PX_DNS_MESSAGE_MAX];
    struct px_dns_question q;
    struct px_dns_reply r;
    struct px_address a = px_address_v4(0xc6120001);
    ASSERT_EQ(px_dns_read_question(message, make_query(message), &q), 0);
    size_t n = px_dns_answer(&q, PX_DNS_OK, &a, 300, reply);
    ASSERT_EQ(px_dns_read_reply(reply, n, 0x1234, "good.test", PX_DNS_A, &r), 0);
    ASSERT(r.count == 1 && px_address_equal(&r.addresses[0], &a) && r.ttl == 300);
    ASSERT_EQ(px_dns_read_reply(reply, n, 0x1235, "good.test", PX_DNS_A, &r), -EBADMSG);
    ASSERT_EQ(px_dns_read_reply(reply, n, 0x1234, "evil.test", PX_DNS_A, &r), -EBADMSG);
    ASSERT_EQ(px_dns_read_reply(reply, n, 0x1234, "good.test", PX_DNS_AAAA, &r), -EBADMSG);
    n = px_dns_answer(&q, PX_DNS_NO_NAME, NULL, 0, reply);
    ASSERT_EQ(px_dns_read_reply(reply, n, 0x1234, "good.test", PX_DNS_A, &r), 0);
    ASSERT(r.count == 0 && r.rcode == PX_DNS_NO_NAME);
}

/* good.test is an alias of x.test, which has an address; y.test, of which nobody asked, has one too. */
TEST(only_the_chain_counts)
{
    static const uint8_t reply[] = "\x12\x34\x81\x80\0\1\0\3\0\0\0\0\4good\4test\0\0\1\0\1"
                                   "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\4\1x\xc0\x11"
                                   "\1y\xc0\x11\0\1\0\1\0\0\0\x3c\0\4\6\6\6\6"
                                   "\1x\xc0\x11\0\1\0\1\0\0\0\x1e\0\4\1\2\3\4";
    struct px_dns_reply r;
    struct px_address want = px_address_v4(0x01020304);
    ASSERT_EQ(px_dns_read_reply(reply, sizeof reply - 1, 0x1234, "good.test", PX_DNS_A, &r), 0);
    ASSERT(r.count == 1 && px_address_equal(&r.addresses[0], &want) && r.ttl == 30);
}

TEST(pointers_come_to_an_end)
{
    uint8_t reply[64] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0\4good\4test\0\0\1\0\1\xc0\x1b\0\1\0\1\0\0\0\1\0\4\1\2\3\4";
    struct px_dns_reply r;
    ASSERT_EQ(px_dns_read_reply(reply, 43, 0x1234, "good.test", PX_DNS_A, &r), -EBADMSG);       /* to itself */
    reply[28] = 0x30;
    ASSERT_EQ(px_dns_read_reply(reply, 43, 0x1234, "good.test", PX_DNS_A, &r), -EBADMSG);       /* forward */
}
