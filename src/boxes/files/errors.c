/* What a person or a model is told: the seed's classes and texts, and what is allowed instead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "files/files.h"

enum { LINE_MAX_BYTES = 320, ERROR_JSON_MAX = 64 << 10, MESSAGE_MAX = 4096 };

/* ---- classes ---- */

static const struct class {
    int code;
    const char *name;
    bool two_lines;             /* the message is what happened, and below it the first line of what is allowed */
    bool retryable;             /* the same call may work later, without anybody changing the rules */
} classes[] = {
    {PX_E_OUTSIDE, "PathNotInSandboxError", true, false},
    {PX_E_READ_ONLY, "PathNotWritableError", true, false},
    {PX_E_SUFFIX, "SuffixNotAllowedError", true, false},
    {PX_E_TOO_LARGE, "FileTooLargeError", true, false},
    {PX_E_NO_FILE, "FileNotFoundError", false, true},
    {PX_E_NOT_FILE, "NotAFileError", false, false},
    {PX_E_NOT_TEXT, "NotTextError", true, false},
    {PX_E_EDIT, "EditError", true, true},
    {PX_E_EXISTS, "FileExistsError", true, true},
    {PX_E_PATTERN, "PatternError", true, false},
    {PX_E_ROOT, "ConfigError", true, false},
    {PX_E_FILE_IO, "FileSandboxError", false, true},
};

static const struct class *find_class(int code)
{
    for (size_t i = 0; i < PX_COUNT_OF(classes); i++)
        if (classes[i].code == code)
            return &classes[i];
    return NULL;
}

const char *px_files_class(int code)
{
    const struct class *c = find_class(code);
    return c ? c->name : NULL;
}

static void add_message(struct px_buf *out, const struct px_err *error)
{
    const struct class *c = find_class(error->code);
    px_buf_puts(out, error->what);
    if (c && c->two_lines && error->fix[0]) {
        px_buf_putc(out, '\n');
        px_buf_add(out, error->fix, strcspn(error->fix, "\n"));
    }
}

int px_files_message(const struct px_err *error, char **ret_text, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(MESSAGE_MAX);
    add_message(&out, error);
    char *text = px_buf_take(&out);
    if (!text)
        return px_files_error_memory(e);
    *ret_text = text;
    return 0;
}

/* ---- JSON ---- */

static void json_lines(struct px_json *j, const char *name, const char *text)
{
    px_json_array(j, name);
    while (*text) {
        size_t n = strcspn(text, "\n");
        px_json_bytes(j, NULL, text, n);
        text += n + (text[n] == '\n');
    }
    px_json_end(j);
}

static void json_names(struct px_json *j, const char *name, const struct px_files *f, bool writable)
{
    px_json_array(j, name);
    for (size_t i = 0; f && i < f->count; i++)
        if (f->roots[i].writable || !writable)
            px_json_text(j, NULL, f->roots[i].name);
    px_json_end(j);
}

static void json_class(struct px_json *j, const struct px_files *f, const struct px_err *error, const char *message)
{
    const struct class *c = find_class(error->code);
    px_json_object(j, "error");
    px_json_text(j, "class", c ? c->name : "FileSandboxError");
    px_json_text(j, "message", message);
    px_json_bool(j, "retryable", c ? c->retryable : error->code == PX_E_VALUE);         /* an argument that is missing or wrong */
    json_names(j, "readable_roots", f, false);
    json_names(j, "writable_roots", f, true);
    px_json_end(j);
}

static void json_details(struct px_json *j, const struct px_err *error)
{
    const struct px_error_text *row = px_err_find(error->code);
    char code[16];
    (void)px_fmt(code, sizeof code, "PX%03d", error->code);
    px_json_object(j, "details");
    px_json_text(j, "code", code);
    px_json_text(j, "reason", row ? row->name : "");
    json_lines(j, "why", error->why);
    json_lines(j, "fix", error->fix);
    px_json_end(j);
}

int px_files_error_json(const struct px_files *files, const struct px_err *error, char **ret_json, struct px_err *e)
{
    PX_ERR(e);
    px_auto_buf struct px_buf out = PX_BUF(ERROR_JSON_MAX), message = PX_BUF(MESSAGE_MAX);
    struct px_json j = {.out = &out};
    add_message(&message, error);
    px_json_object(&j, NULL);
    px_json_bool(&j, "ok", false);
    px_json_text(&j, "status", error->code == PX_E_INTERNAL ? "error" : "user-error");
    px_json_text(&j, "message", px_buf_text(&message));
    json_class(&j, files, error, px_buf_text(&message));
    json_details(&j, error);
    px_json_end(&j);
    px_buf_putc(&out, '\n');
    char *text = message.err < 0 ? NULL : px_buf_take(&out);
    if (!text)
        return px_files_error_memory(e);
    *ret_json = text;
    return 0;
}

/* ---- the errors ---- */

const char *px_files_error_short(const char *text, size_t len, size_t max, char out[PX_WORDS_SHORT])
{
    struct px_buf b = {.data = out, .cap = PX_WORDS_SHORT, .max = max < PX_WORDS_SHORT - 4 ? max : PX_WORDS_SHORT - 4};
    out[0] = '\0';
    px_buf_quote(&b, text, len);
    if (b.err < 0)
        memcpy(out + b.len, "...", 4);
    return out;
}

static const char *short_path(const char *path, char out[PX_WORDS_SHORT])
{
    return px_files_error_short(path, strlen(path), PX_WORDS_SHORT, out);
}

/* "a, b" or "none", cut between names when there are too many. */
static const char *names(const struct px_files *f, bool writable, char out[LINE_MAX_BYTES])
{
    struct px_buf b = {.data = out, .cap = LINE_MAX_BYTES, .max = LINE_MAX_BYTES - 6};
    size_t whole = 0;
    out[0] = '\0';
    for (size_t i = 0; i < f->count && b.err == 0; i++) {
        if (writable && !f->roots[i].writable)
            continue;
        px_buf_puts(&b, b.len ? ", " : "");
        px_buf_quote(&b, f->roots[i].name, f->roots[i].name_len);
        whole = b.err == 0 ? b.len : whole;
    }
    if (b.err < 0)
        memcpy(out + whole, ", ...", 6);
    return out[0] ? out : "none";
}

static void add_suffixes(struct px_buf *b, const struct px_root *r)
{
    for (size_t i = 0; r->suffixes && r->suffixes[i]; i++) {
        px_buf_puts(b, i ? ", " : "");
        px_buf_quote(b, r->suffixes[i], strlen(r->suffixes[i]));
    }
}

/* Each root with its mode and its rules: "portfolio (rw; .md, .pdf; at most 20 bytes)". */
static const char *rules(const struct px_files *f, char out[LINE_MAX_BYTES])
{
    struct px_buf b = {.data = out, .cap = LINE_MAX_BYTES, .max = LINE_MAX_BYTES - 6};
    out[0] = '\0';
    for (size_t i = 0; i < f->count && b.err == 0; i++) {
        const struct px_root *r = &f->roots[i];
        px_buf_puts(&b, i ? ", " : "");
        px_buf_quote(&b, r->name, r->name_len);
        px_buf_puts(&b, r->writable ? " (rw" : " (ro");
        px_buf_puts(&b, r->suffixes ? "; " : "");
        add_suffixes(&b, r);
        if (r->max_bytes != PX_FILES_BYTES_MAX)
            px_buf_printf(&b, "; at most %llu bytes", (unsigned long long)r->max_bytes);
        px_buf_putc(&b, ')');
    }
    if (b.err < 0)
        memcpy(out + b.len, "...", 4);
    return out[0] ? out : "none";
}

int px_files_error_outside(const struct px_files *f, const char *path, size_t len, struct px_err *e)
{
    char text[PX_WORDS_SHORT], line[LINE_MAX_BYTES], all[LINE_MAX_BYTES];
    px_files_error_short(path, len, PX_WORDS_SHORT, text);
    (void)px_fail(e, PX_E_OUTSIDE, 0, "Cannot access '%s': path is outside sandbox.", text);
    return px_fix(e, "Readable paths: %s\nRoots: %s", names(f, false, line), rules(f, all));
}

int px_files_error_read_only(const struct px_files *f, const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT], line[LINE_MAX_BYTES], all[LINE_MAX_BYTES];
    (void)px_fail(e, PX_E_READ_ONLY, 0, "Cannot write to '%s': path is read-only.", short_path(path, text));
    return px_fix(e, "Writable paths: %s\nRoots: %s", names(f, true, line), rules(f, all));
}

int px_files_error_not_writable(const struct px_files *f, const struct px_place *place, const char *path, struct px_err *e)
{
    (void)px_files_error_read_only(f, path, e);
    return place->root->writable ? px_why(e, "What lies in a .git is protected: the host's git obeys it.") : -1;
}

int px_files_error_below_file(const struct px_files *f, const struct px_root *root, const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    if (!root->writable)
        return px_files_error_read_only(f, path, e);
    (void)px_fail(e, PX_E_NOT_FILE, 0, "Cannot write to '%s': a part of its path is no directory.",
                  short_path(path, text));
    return px_why(e, "Nothing can lie below a file.");
}

int px_files_error_suffix(const struct px_root *root, const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT], line[LINE_MAX_BYTES];
    struct px_buf b = {.data = line, .cap = sizeof line, .max = sizeof line - 6};
    line[0] = '\0';
    add_suffixes(&b, root);
    if (b.err < 0)
        memcpy(line + b.len, "...", 4);
    (void)px_fail(e, PX_E_SUFFIX, 0, "Cannot access '%s': suffix not allowed.", short_path(path, text));
    return px_fix(e, "Allowed suffixes: %s", line);
}

int px_files_error_too_large(const char *verb, const char *path, uint64_t size, uint64_t limit, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    (void)px_fail(e, PX_E_TOO_LARGE, 0, "Cannot %s '%s': file too large (%ju bytes).", verb, short_path(path, text),
                  (uintmax_t)size);
    return px_fix(e, "Maximum allowed: %ju bytes", (uintmax_t)limit);
}

int px_files_error_not_text(const char *verb, const char *path, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    return px_fail(e, PX_E_NOT_TEXT, 0, "Cannot %s '%s': not UTF-8 text.", verb, short_path(path, text));
}

int px_files_error_memory(struct px_err *e)
{
    return px_no_memory(e);
}

int px_files_error_sys(const struct px_files *f, const char *verb, const char *path, int err, struct px_err *e)
{
    char text[PX_WORDS_SHORT];
    short_path(path, text);
    switch (err) {
    case -EXDEV:
    case -ELOOP:
        return px_files_error_outside(f, path, strlen(path), e);
    case -ENOENT:
    case -ENOTDIR:
        return px_fail(e, PX_E_NO_FILE, 0, "File not found: %s", text);
    case -EISDIR:
        return px_fail(e, PX_E_NOT_FILE, 0, "Not a file: %s", text);
    case -EEXIST:
        return px_fail(e, PX_E_EXISTS, 0, "Cannot %s to '%s': it already exists.", verb, text);
    case -ENOMEM:
        return px_files_error_memory(e);
    default:
        return px_fail(e, PX_E_FILE_IO, err, "Cannot %s '%s': %s.", verb, text, px_errno_text(err));
    }
}
