/* The output of a command as text for people and models: a line marks where bytes were left out. */
#include "base/buf.h"
#include "base/err.h"
#include "box/supervise.h"

/* At least one newline before the mark, so that it is a line of its own. */
static void add_mark(struct px_buf *out, uint64_t left_out)
{
    if (out->len && out->data[out->len - 1] != '\n')
        px_buf_putc(out, '\n');
    px_buf_printf(out, "[... %llu bytes left out ...]\n", (unsigned long long)left_out);
}

PX_API int px_box_output(const struct px_box *box, int stream, char **ret_text, size_t *ret_len, struct px_err *e)
{
    PX_ERR(e);
    const struct px_flow *f = &box->flow[stream == 2 ? 2 : 1];
    const struct px_result *r = &box->result;
    const struct px_bytes *kept = stream == 2 ? &r->err : &r->out;
    px_auto_buf struct px_buf out = PX_BUF(SIZE_MAX / 4);
    size_t head = f->kept.head.len < kept->len ? f->kept.head.len : kept->len;
    px_buf_add(&out, kept->data, head);
    if (f->capture && (stream == 2 ? r->err_truncated : r->out_truncated) && f->total > kept->len)
        add_mark(&out, f->total - kept->len);
    px_buf_add(&out, kept->data + head, kept->len - head);
    size_t len = out.len;
    char *text = px_buf_take(&out);
    if (!text)
        return px_no_memory(e);
    *ret_text = text;
    *ret_len = len;
    return 0;
}
