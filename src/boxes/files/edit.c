/* Replacing text that occurs exactly once; all of a list of edits or none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "changes/unified.h"
#include "files/edit.h"
#include "files/files.h"

enum { SHOWN_CHARS = 100, DIFF_MAX = 16 << 20 };

/* ---- pure ---- */

/* How often the text occurs, side by side; two that overlap count as two as well: either could be meant. */
static uint64_t count_matches(const char *data, size_t len, const struct px_files_edit *edit, size_t *ret_first)
{
    uint64_t n = 0;
    const char *end = data + len, *first = NULL;
    for (const char *at = data; (at = memmem(at, (size_t)(end - at), edit->old_text, edit->old_len));
         at += edit->old_len, n++)
        first = first ? first : at;
    if (n == 1 && memmem(first + 1, (size_t)(end - first - 1), edit->old_text, edit->old_len))
        n = 2;
    *ret_first = first ? (size_t)(first - data) : 0;
    return n;
}

uint64_t px_edit_apply(const char *data, size_t len, const struct px_files_edit *edit, struct px_buf *out)
{
    size_t at;
    uint64_t n = edit->old_len ? count_matches(data, len, edit, &at) : 0;
    if (n != 1)
        return n;
    px_buf_add(out, data, at);
    px_buf_add(out, edit->new_text, edit->new_len);
    px_buf_add(out, data + at + edit->old_len, len - at - edit->old_len);
    return 1;
}

/* ---- words ---- */

/* The first characters of the text, with \n for a new line. */
static const char *shown(const struct px_files_edit *edit, char out[PX_WORDS_SHORT])
{
    char lines[PX_WORDS_SHORT];
    struct px_buf b = {.data = lines, .cap = sizeof lines, .max = sizeof lines - 8};
    struct px_window w;
    lines[0] = '\0';
    size_t len = edit->old_len < (size_t)SHOWN_CHARS * 4 ? edit->old_len : (size_t)SHOWN_CHARS * 4;
    bool whole = px_files_window_find(edit->old_text, len, 0, SHOWN_CHARS, &w) == 0;
    len = whole ? w.end : len < SHOWN_CHARS ? len : SHOWN_CHARS;
    for (size_t i = 0; i < len && b.err == 0; i++)
        px_buf_add(&b, edit->old_text[i] == '\n' ? "\\n" : &edit->old_text[i], edit->old_text[i] == '\n' ? 2 : 1);
    return px_files_error_short(lines, b.len, PX_WORDS_SHORT, out);
}

/* What may be why: a model writes \n whatever the file has. */
static const char *line_ends(const struct px_buf *file, const struct px_files_edit *edit)
{
    bool theirs = memmem(file->data, file->len, "\r\n", 2), ours = memmem(edit->old_text, edit->old_len, "\r\n", 2);
    if (theirs == ours || !memchr(edit->old_text, '\n', edit->old_len))
        return "";
    return theirs ? " The lines of the file end in \\r\\n, those of the text in \\n." : " The lines of the text end in \\r\\n, those of the file do not.";
}

static int no_match(const char *path, const struct px_buf *file, const struct px_files_edit *edit, uint64_t n, struct px_err *e)
{
    char name[PX_WORDS_SHORT], text[PX_WORDS_SHORT];
    px_files_error_short(path, strlen(path), PX_WORDS_SHORT, name);
    if (edit->old_len == 0)
        (void)px_fail(e, PX_E_EDIT, 0, "Cannot edit '%s': the text to replace is empty.", name);
    else if (n == 0)
        (void)px_fail(e, PX_E_EDIT, 0, "Cannot edit '%s': text not found.%s", name, line_ends(file, edit));
    else
        (void)px_fail(e, PX_E_EDIT, 0, "Cannot edit '%s': text found %ju times, it must be unique.", name,
                      (uintmax_t)n);
    return px_fix(e, "Searched for: '%s'\nRead the file again and give text that occurs exactly once.",
                  shown(edit, text));
}

/* ---- a file ---- */

struct work {
    struct px_place place;
    struct stat st;
    struct px_buf old, new;
    struct px_files_done done;
};

static int read_old(const struct px_files *f, const char *path, struct work *w, struct px_err *e)
{
    struct px_window window;
    uint64_t max = w->place.root->max_bytes;
    px_auto_fd int fd = px_files_resolve_open(f, path, &w->place, &w->st, e);
    if (fd < 0)
        return -1;
    w->old = PX_BUF(SIZE_MAX / 2);
    int r = px_read_whole(fd, (uint64_t)w->st.st_size, max, &w->old.data, &w->old.len);
    if (r < 0)
        return px_files_error_sys(f, "read", path, r, e);
    w->old.cap = w->old.len + 1;
    return px_files_window_find(w->old.data, w->old.len, 0, 0, &window) < 0 ? px_files_error_not_text("read", path, e) : 0;
}

static int apply_one(const char *path, const struct px_files_edit *edit, struct work *w, struct px_err *e)
{
    struct px_window window = {0};
    const struct px_buf *from = w->new.data ? &w->new : &w->old;
    px_auto_buf struct px_buf out = PX_BUF(w->place.root->max_bytes);
    if (px_files_window_find(edit->new_text, edit->new_len, 0, 0, &window) < 0)
        return px_files_error_not_text("write", path, e);
    w->done.new_chars += window.total;
    uint64_t n = px_edit_apply(px_buf_text(from), from->len, edit, &out);
    if (n != 1)
        return no_match(path, from, edit, n, e);
    (void)px_files_window_find(edit->old_text, edit->old_len, 0, 0, &window);
    w->done.old_chars += window.total;
    if (out.err == -E2BIG)
        return px_files_error_too_large("write", path, from->len - edit->old_len + edit->new_len, w->place.root->max_bytes,
                                  e);
    if (out.err < 0)
        return px_files_error_memory(e);
    px_buf_done(&w->new);
    w->new = out;
    out = PX_BUF(0);
    if (!w->new.data && px_buf_add(&w->new, "", 0) < 0)
        return px_files_error_memory(e);
    return 0;
}

static int make_diff(struct work *w, struct px_err *e)
{
    px_auto_buf struct px_buf out = PX_BUF(DIFF_MAX);
    struct px_diff_side before = {px_buf_text(&w->old), w->old.len, 0100644},
                        after = {px_buf_text(&w->new), w->new.len, 0100644};
    struct px_window window = {0};
    w->done.path = px_files_resolve_name(&w->place);
    if (!w->done.path)
        return px_files_error_memory(e);
    if (px_unified_write(w->done.path, &before, &after, PX_DIFF_PLAIN, &out) < 0)
        return px_files_error_memory(e);
    w->done.diff = px_buf_take(&out);
    /* Valid texts, but a piece of a character may have been replaced: the whole is looked at once more. */
    if (px_files_window_find(w->new.data, w->new.len, 0, 0, &window) < 0)
        return px_files_error_not_text("write", w->done.path, e);
    w->done.chars = window.total;
    return w->done.diff ? 0 : px_files_error_memory(e);
}

static int edit_file(const struct px_files *f, const char *path, const struct px_files_edit *edits, size_t count,
                     bool dry_run, struct work *w, struct px_err *e)
{
    if (px_files_target_allow(f, path, 0, &w->place, e) < 0 || read_old(f, path, w, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (apply_one(path, &edits[i], w, e) < 0)
            return -1;
    if (make_diff(w, e) < 0)
        return -1;
    return dry_run ? 0 : px_files_write_place(f, path, &w->place, &w->st, w->new.data, w->new.len, e);
}

int px_files_edit(const struct px_files *files, const char *path, const struct px_files_edit *edits, size_t count,
                  bool dry_run, struct px_files_done *ret_done, struct px_err *e)
{
    PX_ERR(e);
    struct work w = {0};
    if (count == 0 || count > PX_FILES_EDITS_MAX)
        return px_fail(e, PX_E_EDIT, 0, "Cannot edit: there must be from 1 to %d edits.", PX_FILES_EDITS_MAX);
    int r = edit_file(files, path, edits, count, dry_run, &w, e);
    px_buf_done(&w.old);
    px_buf_done(&w.new);
    if (r >= 0 && ret_done)
        *ret_done = w.done;
    else
        px_files_done_free(&w.done);
    return r;
}
