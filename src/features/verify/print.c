/* The report of a verification for programs: JSON, and the XML that test runners of continuous integration read. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "verify/verify.h"

enum { PRINT_MAX = 16 << 20 };

/* ---- JSON ---- */

static void print_check(struct px_json *j, const struct px_check *c)
{
    px_json_object(j, NULL);
    px_json_text(j, "name", c->name);
    px_json_text(j, "category", c->category);
    px_json_text(j, "held_by", c->held_by);
    px_json_text(j, "result", px_check_result_name(c->result));
    px_json_text(j, "proof", c->proof);
    px_json_text(j, "reason", c->reason);
    px_json_decimal(j, "seconds", c->nsec / 1000000, 3);
    px_json_end(j);
}

PX_API int px_verify_json(const struct px_verify_report *report, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(PRINT_MAX);
    struct px_json j = {.out = &out};
    px_json_object(&j, NULL);
    px_json_int(&j, "schema", 1);
    px_json_text(&j, "preset", report->preset);
    px_json_text(&j, "base", report->base);
    px_json_text(&j, "runtime", report->runtime);
    px_json_text(&j, "tier", report->tier);
    px_json_bool(&j, "self_test", report->self_test);
    px_json_bool(&j, "stopped", report->stopped);
    px_json_array(&j, "checks");
    for (size_t i = 0; i < report->count; i++)
        print_check(&j, &report->checks[i]);
    px_json_end(&j);
    px_json_array(&j, "differs");
    for (size_t i = 0; i < report->count; i++)
        if (report->checks[i].result == PX_CHECK_DIFFERS) {
            px_json_object(&j, NULL);
            px_json_text(&j, "name", report->checks[i].name);
            px_json_text(&j, "reason", report->checks[i].reason);
            px_json_end(&j);
        }
    px_json_end(&j);
    px_json_uint(&j, "passed", report->passed);
    px_json_uint(&j, "failed", report->failed);
    px_json_uint(&j, "skipped", report->skipped);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the report is too large to print");
    *ret_json = px_buf_take(&out);
    return 0;
}

/* ---- JUnit ---- */

/* XML cannot contain control characters, and invalid UTF-8 would make the whole file unreadable. */
static void put_xml(struct px_buf *out, const char *text)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        size_t n = px_utf8_length(text + i, len - i);
        const char *entity = NULL;
        for (size_t k = 0; n == 1 && k < PX_COUNT_OF(entities); k++)
            entity = text[i] == entities[k].c ? entities[k].entity : entity;
        bool control = n == 1 && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f);
        /* U+0080 to U+009F are control characters too, and U+FFFE and U+FFFF are not characters. */
        bool odd = (n == 2 && text[i] == '\xc2' && (unsigned char)text[i + 1] < 0xa0) ||
                   (n == 3 && text[i] == '\xef' && text[i + 1] == '\xbf' && (unsigned char)text[i + 2] >= 0xbe);
        if (n == 0 || control || odd)
            px_buf_putc(out, '?');
        else if (entity)
            px_buf_puts(out, entity);
        else
            px_buf_add(out, text + i, n);
        i += n ? n : 1;
    }
}

static void put_attribute(struct px_buf *out, const char *name, const char *value)
{
    px_buf_printf(out, " %s=\"", name);
    put_xml(out, value);
    px_buf_putc(out, '"');
}

static void put_time(struct px_buf *out, uint64_t nsec)
{
    unsigned long long msec = nsec / 1000000;
    px_buf_printf(out, " time=\"%llu.%03llu\">", msec / 1000, msec % 1000);
}

static void put_case(struct px_buf *out, const struct px_check *c)
{
    px_buf_puts(out, "    <testcase");
    put_attribute(out, "classname", c->category);
    put_attribute(out, "name", c->name);
    put_time(out, c->nsec);
    if (c->result != PX_CHECK_PASSED) {
        px_buf_puts(out, c->result == PX_CHECK_FAILED ? "<failure" : "<skipped");
        px_auto_buf struct px_buf message = PX_BUF(8192);
        px_buf_printf(&message, "%s%s", c->result == PX_CHECK_DIFFERS ? "differs: " : "", c->reason ? c->reason : "");
        put_attribute(out, "message", px_buf_text(&message));
        px_buf_puts(out, "/>");
    } else if (c->proof) {
        px_buf_puts(out, "<system-out>");
        put_xml(out, c->proof);
        px_buf_puts(out, "</system-out>");
    }
    px_buf_puts(out, "</testcase>\n");
}

PX_API int px_verify_junit(const struct px_verify_report *report, char **ret_xml, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(PRINT_MAX);
    uint64_t nsec = 0;
    for (size_t i = 0; i < report->count; i++)
        nsec += report->checks[i].nsec;
    px_buf_puts(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"px sandbox verify\"");
    px_buf_printf(&out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"", report->count, report->failed,
                  report->skipped);
    put_time(&out, nsec);
    px_buf_puts(&out, "\n    <properties>");
    const struct {
        const char *name, *value;
    } properties[] = {{"preset", report->preset}, {"base", report->base}, {"runtime", report->runtime}, {"tier", report->tier}};
    for (size_t i = 0; i < PX_COUNT_OF(properties); i++) {
        px_buf_puts(&out, "<property");
        put_attribute(&out, "name", properties[i].name);
        put_attribute(&out, "value", properties[i].value);
        px_buf_puts(&out, "/>");
    }
    px_buf_puts(&out, "</properties>\n");
    for (size_t i = 0; i < report->count; i++)
        put_case(&out, &report->checks[i]);
    px_buf_puts(&out, "  </testsuite>\n</testsuites>\n");
    if (out.err < 0)
        return px_fail(e, PX_E_MEMORY, out.err, "the report is too large to print");
    *ret_xml = px_buf_take(&out);
    return 0;
}
