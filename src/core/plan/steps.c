#include "plan/steps.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

static const struct {
    const char *word;
    int stage, code;
} ops[PX_OP_COUNT] = {
#define PX_OP(name, word, function, stage, code) [PX_OP_##name] = {word, stage, PX_E_##code},
#include "plan/ops.def"
#undef PX_OP
};

const char *px_steps_op_word(enum px_op op)
{
    return ops[op].word;
}

int px_steps_op_code(enum px_op op)
{
    return ops[op].code;
}

int px_steps_op_stage(enum px_op op)
{
    return ops[op].stage;
}

static uint32_t add_bytes(struct px_plan *plan, const char *data, size_t len)
{
    size_t at = plan->text.len;
    px_buf_add(&plan->text, data, len);
    px_buf_putc(&plan->text, '\0');
    return plan->text.err < 0 ? 0 : (uint32_t)at;
}

uint32_t px_steps_text(struct px_plan *plan, const char *text)
{
    const char *arena = plan->text.data;
    if (!text || !*text)
        return 0;
    if (arena && text >= arena && text < arena + plan->text.len)
        return (uint32_t)(text - arena);        /* it is in the arena already, which may move when it grows */
    return add_bytes(plan, text, strlen(text));
}

/* The arena's sticky error also means "too many steps", so that callers need not check each call. */
uint32_t px_steps_bytes(struct px_plan *plan, const void *data, size_t length)
{
    while (plan->text.err == 0 && plan->text.len % PX_STEPS_INSTRUCTION)
        px_buf_putc(&plan->text, '\0');
    uint32_t at = (uint32_t)plan->text.len;
    px_buf_add(&plan->text, data, length);
    return at;
}

uint32_t px_steps_program(struct px_plan *plan, const struct sock_filter *code, uint16_t length)
{
    return px_steps_bytes(plan, code, (size_t)length * PX_STEPS_INSTRUCTION);
}

struct px_step *px_steps_add(struct px_plan *plan, enum px_op op)
{
    if (plan->count >= PX_STEPS_MAX) {
        plan->text.err = plan->text.err < 0 ? plan->text.err : -E2BIG;
        plan->count = PX_STEPS_MAX - 1;
    }
    struct px_step *s = &plan->steps[plan->count++];
    *s = (struct px_step){.op = (uint16_t)op, .fd = -1};
    return s;
}

struct px_step *px_steps_at(struct px_plan *plan, enum px_op op, const char *dst)
{
    uint32_t at = px_steps_text(plan, dst);
    struct px_step *s = px_steps_add(plan, op);
    s->dst = at;
    return s;
}

void px_steps_dir(struct px_plan *plan, const char *path, unsigned mode, unsigned flags)
{
    struct px_step *s = px_steps_at(plan, PX_OP_MKDIR, path);
    s->attr = mode;
    s->flags = (uint16_t)flags;
}

void px_steps_link(struct px_plan *plan, const char *to, const char *path)
{
    uint32_t src = px_steps_text(plan, to);
    px_steps_at(plan, PX_OP_SYMLINK, path)->src = src;
}

void px_steps_file(struct px_plan *plan, const char *path, const char *content)
{
    uint32_t src = px_steps_text(plan, content);
    struct px_step *s = px_steps_at(plan, PX_OP_FILE, path);
    s->src = src;
    s->num = strlen(content);
    s->attr = 0644;
}

bool px_steps_has(const struct px_plan *plan, enum px_op op, const char *dst)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].op == op && px_equal(px_plan_text(plan, plan->steps[i].dst), dst))
            return true;
    return false;
}

/* Directories from the root down to the parent of path (or to path itself), each once. */
void px_steps_dirs(struct px_plan *plan, const char *path, bool itself, unsigned flags)
{
    char part[PATH_MAX];
    for (size_t n = 1; path[n - 1]; n++) {
        if (path[n] != '/' && path[n] != '\0')
            continue;
        if (path[n] == '\0' && !itself)
            break;
        memcpy(part, path, n);
        part[n] = '\0';
        if (!px_steps_has(plan, PX_OP_MKDIR, part) && !px_steps_has(plan, PX_OP_SYMLINK, part))
            px_steps_dir(plan, part, 0755, flags);
        if (path[n] == '\0')
            break;
    }
}

/* The child has another working directory than the caller, so a relative path is made absolute. */
uint32_t px_steps_host_path(struct px_plan *plan, const char *path)
{
    char where[PATH_MAX];
    uint32_t at = (uint32_t)plan->text.len;
    if (path[0] == '/')
        return px_steps_text(plan, path);
    if (!getcwd(where, sizeof where)) {
        plan->text.err = plan->text.err < 0 ? plan->text.err : -ENOENT;
        return 0;
    }
    px_buf_puts(&plan->text, where);
    px_buf_putc(&plan->text, '/');
    px_buf_add(&plan->text, path, strlen(path) + 1);
    return at;
}

struct px_step *px_steps_bind(struct px_plan *plan, const char *source, const char *target, unsigned attr, const struct stat *st)
{
    uint32_t src = px_steps_host_path(plan, source);
    struct px_step *s = px_steps_at(plan, PX_OP_BIND, target);
    s->src = src;
    s->attr = attr;
    s->num = st->st_dev;
    s->num2 = st->st_ino;
    if (!S_ISDIR(st->st_mode))
        s->flags |= PX_STEP_FILE;
    return s;
}
