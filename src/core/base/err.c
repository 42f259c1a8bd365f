/* base/err.c - the error table, texts for errno, and a formatter that never writes control bytes from its arguments. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

const struct px_error_text px_error_texts[] = {
#define PX_ERROR(number, name, what, why, fix) {number, #name, what, why, fix},
#include "errors.def"
#undef PX_ERROR
    {0, NULL, NULL, NULL, NULL},
};

const struct px_error_text *px_err_find(int code)
{
    for (const struct px_error_text *t = px_error_texts; t->code != 0; t++)
        if (t->code == code)
            return t;
    return NULL;
}

/* vague: the kernel uses this number for so many causes that the table's guess is added. */
static const struct {
    int sys;
    bool vague;
    const char *text;
} errno_texts[] = {
    // clang-format off
    { EPERM,        true,  "EPERM: operation not permitted" },
    { ENOENT,       false, "ENOENT: no such file or directory" },
    { ESRCH,        false, "ESRCH: no such process" },
    { EINTR,        false, "EINTR: interrupted by a signal" },
    { EIO,          false, "EIO: input/output error" },
    { ENXIO,        false, "ENXIO: no such device or address" },
    { E2BIG,        false, "E2BIG: larger than the limit allows" },
    { ENOEXEC,      false, "ENOEXEC: not an executable format" },
    { EBADF,        false, "EBADF: bad file descriptor" },
    { ECHILD,       false, "ECHILD: no child process" },
    { EAGAIN,       true,  "EAGAIN: resource temporarily unavailable" },
    { ENOMEM,       false, "ENOMEM: out of memory" },
    { EACCES,       true,  "EACCES: permission denied" },
    { EFAULT,       false, "EFAULT: bad address" },
    { ENOTBLK,      false, "ENOTBLK: not a block device" },
    { EBUSY,        false, "EBUSY: device or resource busy" },
    { EEXIST,       false, "EEXIST: file exists" },
    { EXDEV,        false, "EXDEV: the path leads out of its directory or file system" },
    { ENODEV,       true,  "ENODEV: no such device" },
    { ENOTDIR,      false, "ENOTDIR: not a directory" },
    { EISDIR,       false, "EISDIR: is a directory" },
    { EINVAL,       true,  "EINVAL: invalid argument" },
    { ENFILE,       false, "ENFILE: too many open files on this host" },
    { EMFILE,       false, "EMFILE: too many open files in this process" },
    { ENOTTY,       false, "ENOTTY: not a terminal" },
    { ETXTBSY,      false, "ETXTBSY: the file is open for writing" },
    { EFBIG,        false, "EFBIG: file too large" },
    { ENOSPC,       true,  "ENOSPC: no space left, or a kernel limit is reached" },
    { ESPIPE,       false, "ESPIPE: cannot seek" },
    { EROFS,        false, "EROFS: read-only file system" },
    { EMLINK,       false, "EMLINK: too many links" },
    { EPIPE,        false, "EPIPE: nobody reads the other end" },
    { ERANGE,       false, "ERANGE: out of range" },
    { EDEADLK,      false, "EDEADLK: would deadlock" },
    { ENAMETOOLONG, false, "ENAMETOOLONG: name too long" },
    { ENOSYS,       true,  "ENOSYS: the kernel does not have this system call" },
    { ENOTEMPTY,    false, "ENOTEMPTY: directory not empty" },
    { ELOOP,        false, "ELOOP: a symbolic link is in the way, or too many of them" },
    { ENODATA,      false, "ENODATA: no data available" },
    { EPROTO,       false, "EPROTO: protocol error" },
    { EOVERFLOW,    false, "EOVERFLOW: value too large" },
    { EILSEQ,       false, "EILSEQ: invalid byte sequence" },
    { EUSERS,       true,  "EUSERS: too many users" },
    { ENOTSOCK,     false, "ENOTSOCK: not a socket" },
    { EMSGSIZE,     false, "EMSGSIZE: message too long" },
    { EPROTONOSUPPORT, true, "EPROTONOSUPPORT: protocol not supported" },
    { EOPNOTSUPP,   true,  "EOPNOTSUPP: operation not supported" },
    { EAFNOSUPPORT, true,  "EAFNOSUPPORT: address family not supported" },
    { EADDRINUSE,   false, "EADDRINUSE: address already in use" },
    { EADDRNOTAVAIL, false, "EADDRNOTAVAIL: address not available" },
    { ENETDOWN,     false, "ENETDOWN: network is down" },
    { ENETUNREACH,  false, "ENETUNREACH: network is unreachable" },
    { ECONNABORTED, false, "ECONNABORTED: connection aborted" },
    { ECONNRESET,   false, "ECONNRESET: connection reset by the other side" },
    { ENOBUFS,      false, "ENOBUFS: no buffer space available" },
    { EISCONN,      false, "EISCONN: already connected" },
    { ENOTCONN,     false, "ENOTCONN: not connected" },
    { ETIMEDOUT,    false, "ETIMEDOUT: timed out" },
    { ECONNREFUSED, false, "ECONNREFUSED: connection refused" },
    { EHOSTUNREACH, false, "EHOSTUNREACH: no route to host" },
    { EALREADY,     false, "EALREADY: already in progress" },
    { EINPROGRESS,  false, "EINPROGRESS: in progress" },
    { ESTALE,       false, "ESTALE: stale file handle" },
    { EDQUOT,       false, "EDQUOT: disk quota exceeded" },
    { ECANCELED,    false, "ECANCELED: cancelled" },
    { ENOKEY,       false, "ENOKEY: required key not available" },
    // clang-format on
};

/* -INT_MIN does not exist, and is not an errno either. */
static int errno_positive(int sys)
{
    return sys < 0 && sys >= -4095 ? -sys : sys;
}

const char *px_errno_text(int sys)
{
    sys = errno_positive(sys);
    for (size_t i = 0; i < PX_COUNT_OF(errno_texts); i++)
        if (errno_texts[i].sys == sys)
            return errno_texts[i].text;
    return "unknown error";
}

static bool errno_is_vague(int sys)
{
    for (size_t i = 0; i < PX_COUNT_OF(errno_texts); i++)
        if (errno_texts[i].sys == sys)
            return errno_texts[i].vague;
    return true;
}

/* ---- formatting ----
 *
 * The words of the format are ours and are copied as they are (a fix has one action per line); what comes in through %s and
 * %c is foreign and is quoted. vsnprintf cannot tell the two apart, so the conversions are walked here:
 * %s %.*s %.Ns %c %d %i %u %x %o %f %% with h, hh, l, ll, z, j, t, a width, and the flags 0 and -. Anything else ends the
 * text at that point, because the type of its argument is not known. */

struct spec {
    bool zero, left;
    int width;
    int precision;              /* -1 if not given */
    char length;                /* 0, 'l', 'L' (ll), 'z', 'j' or 't'; h and hh are read as int anyway */
    char conversion;
};

static int read_small_number(const char **at)
{
    int n = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++)
        n = n < 10000 ? n * 10 + (**at - '0') : n;
    return n;
}

static const char *skip_length(const char *at, char *ret_length)
{
    *ret_length = 0;
    for (; *at && strchr("hlzjt", *at); at++)
        if (*at != 'h')
            *ret_length = *at == 'l' && *ret_length == 'l' ? 'L' : *at;
    return at;
}

/* A va_list is passed by a pointer to this struct: as a parameter an array type such as x86-64's va_list becomes a
 * pointer. */
struct args {
    va_list list;
};

static const char *read_spec(const char *at, struct args *args, struct spec *ret_spec)
{
    struct spec s = {.precision = -1};

    for (; *at == '0' || *at == '-'; at++) {
        s.zero = s.zero || *at == '0';
        s.left = s.left || *at == '-';
    }
    s.width = read_small_number(&at);
    if (*at == '.') {
        at++;
        if (*at == '*') {
            s.precision = va_arg(args->list, int);
            at++;
        } else {
            s.precision = read_small_number(&at);
        }
    }
    at = skip_length(at, &s.length);
    s.conversion = *at;
    *ret_spec = s;
    return *at ? at + 1 : at;
}

static intmax_t next_signed(struct args *args, char length)
{
    switch (length) {
    case 'l':
        return va_arg(args->list, long);
    case 'L':
        return va_arg(args->list, long long);
    case 'z':
    case 't':
        return va_arg(args->list, ptrdiff_t);
    case 'j':
        return va_arg(args->list, intmax_t);
    default:
        return va_arg(args->list, int);
    }
}

static uintmax_t next_unsigned(struct args *args, char length)
{
    switch (length) {
    case 'l':
        return va_arg(args->list, unsigned long);
    case 'L':
        return va_arg(args->list, unsigned long long);
    case 'z':
    case 't':
        return va_arg(args->list, size_t);
    case 'j':
        return va_arg(args->list, uintmax_t);
    default:
        return va_arg(args->list, unsigned);
    }
}

static void add_number(struct px_buf *b, const struct spec *s, struct args *args)
{
    char digits[400];           /* the largest double has 309 before the point */
    int width = s->left ? -(s->width < 40 ? s->width : 40) : s->width < 40 ? s->width : 40;
    int n;

    if (s->conversion == 'd' || s->conversion == 'i') {
        intmax_t value = next_signed(args, s->length);
        n = snprintf(digits, sizeof digits, s->zero ? "%0*jd" : "%*jd", width, value);
    } else if (s->conversion == 'f') {
        int places = s->precision < 0 ? 6 : s->precision < 20 ? s->precision : 20;
        n = snprintf(digits, sizeof digits, "%*.*f", width, places, va_arg(args->list, double));
    } else {
        uintmax_t value = next_unsigned(args, s->length);
        const char *fmt = s->conversion == 'x' ? (s->zero ? "%0*jx" : "%*jx")
                          : s->conversion == 'o' ? (s->zero ? "%0*jo" : "%*jo")
                                                 : (s->zero ? "%0*ju" : "%*ju");
        n = snprintf(digits, sizeof digits, fmt, width, value);
    }
    if (n > 0)
        px_buf_add(b, digits, (size_t)n);
}

static void add_text(struct px_buf *b, const struct spec *s, const char *text, size_t len)
{
    size_t from = b->len;

    px_buf_quote(b, text, len);
    size_t wide = b->len - from, fill = s->width > 0 && (size_t)s->width > wide ? (size_t)s->width - wide : 0;
    for (size_t i = 0; i < fill; i++)
        px_buf_putc(b, ' ');
    if (s->left || fill == 0 || b->err < 0)
        return;
    memmove(b->data + from + fill, b->data + from, wide);
    memset(b->data + from, ' ', fill);
}

/* False if the conversion is not known. */
static bool add_conversion(struct px_buf *b, const struct spec *s, struct args *args)
{
    const char *text;
    char c;

    switch (s->conversion) {
    case '%':
        px_buf_putc(b, '%');
        return true;
    case 'c':
        c = (char)va_arg(args->list, int);
        px_buf_quote(b, &c, 1);
        return true;
    case 's':
        text = va_arg(args->list, const char *);
        if (!text)
            text = "(null)";
        add_text(b, s, text, s->precision >= 0 ? strnlen(text, (size_t)s->precision) : strlen(text));
        return true;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'o':
    case 'f':
        add_number(b, s, args);
        return true;
    default:
        return false;
    }
}

/* px's own text: copied unchanged, but one character at a time, so that a cut falls between characters. */
static void add_words(struct px_buf *b, const char *words, size_t len)
{
    for (size_t i = 0; i < len && b->err == 0;) {
        size_t n = px_utf8_length(words + i, len - i);

        n = n ? n : 1;
        px_buf_add(b, words + i, n);
        i += n;
    }
}

static void add_format(struct px_buf *b, const char *fmt, struct args *args)
{
    struct spec spec;

    while (*fmt && b->err == 0) {
        size_t words = strcspn(fmt, "%");

        add_words(b, fmt, words);
        fmt += words;
        if (!*fmt)
            return;
        fmt = read_spec(fmt + 1, args, &spec);
        if (!add_conversion(b, &spec, args))
            return;
    }
}

PX_API char *px_words(const char *fmt, va_list list)
{
    enum { WORDS_MAX = 16 << 20 };
    px_auto_buf struct px_buf b = PX_BUF(WORDS_MAX);
    struct args args;

    va_copy(args.list, list);
    px_buf_puts(&b, "");
    add_format(&b, fmt, &args);
    va_end(args.list);
    return px_buf_take(&b);
}

/* A px_buf over the field itself. It never allocates, because cap is larger than max from the start. Three bytes are
 * reserved for the mark of a cut. */
static struct px_buf field_begin(char *out, size_t size)
{
    out[0] = 0;
    return (struct px_buf){.data = out, .cap = size, .max = size - 4};
}

static void field_end(struct px_buf *b)
{
    if (b->err < 0)
        memcpy(b->data + b->len, "...", 4);
}

static void fill(char *out, size_t size, const char *fmt, struct args *args)
{
    struct px_buf b = field_begin(out, size);

    add_format(&b, fmt, args);
    field_end(&b);
}

/* The rows of these codes only refer to the errno, so they add nothing to it. */
static bool table_knows_more(int code)
{
    return code != PX_E_IO && code != PX_E_MOUNT;
}

static void fill_why(struct px_err *e, const struct px_error_text *t)
{
    struct px_buf b = field_begin(e->why, sizeof e->why);

    if (e->sys != 0)
        add_words(&b, px_errno_text(e->sys), strlen(px_errno_text(e->sys)));
    if (e->sys != 0 && t && errno_is_vague(e->sys) && table_knows_more(e->code))
        add_words(&b, ". ", 2);
    if (t && (e->sys == 0 || (errno_is_vague(e->sys) && table_knows_more(e->code))))
        add_words(&b, t->why, strlen(t->why));
    field_end(&b);
}

static void fill_text(char *out, size_t size, const char *text)
{
    struct px_buf b = field_begin(out, size);

    add_words(&b, text, strlen(text));
    field_end(&b);
}

/* The fix for an errno that is more specific than the row of the code. */
static const char *fix_of(int code, int sys, const struct px_error_text *t)
{
    static const struct {
        int code, sys;
        const char *fix;
    } causes[] = {
        {PX_E_IO, ENOENT, "Check the path."},
        {PX_E_IO, ENOTDIR, "Check the path."},
        {PX_E_IO, EACCES, "Check the permissions of the file and of the directories above it."},
        {PX_E_IO, EPERM, "Check the permissions of the file and of the directories above it."},
        {PX_E_IO, EMFILE, "Allow more open files: ulimit -n 64 or more."},
        {PX_E_CLONE, EMFILE, "Allow more open files: ulimit -n 64 or more."},
        {PX_E_CLONE, EAGAIN, "Check the process limits of this user (ulimit -u) and of its cgroup."},
    };
    for (size_t i = 0; i < PX_COUNT_OF(causes); i++)
        if (causes[i].code == code && causes[i].sys == sys)
            return causes[i].fix;
    return t ? t->fix : "";
}

int px_fail(struct px_err *e, enum px_code code, int sys, const char *fmt, ...)
{
    const struct px_error_text *t = px_err_find((int)code);
    struct args args;

    if (!e)
        return -1;
    e->code = (int)code;
    e->sys = errno_positive(sys);
    e->details[0] = '\0';
    va_start(args.list, fmt);
    if (fmt)
        fill(e->what, sizeof e->what, fmt, &args);
    else
        fill_text(e->what, sizeof e->what, t ? t->what : "");
    va_end(args.list);
    fill_why(e, t);
    fill_text(e->fix, sizeof e->fix, fix_of(e->code, e->sys, t));
    return -1;
}

int px_no_memory(struct px_err *e)
{
    return px_fail(e, PX_E_MEMORY, ENOMEM, "px ran out of memory");
}

int px_detail(struct px_err *e, const char *key, const char *value)
{
    char member[sizeof e->details];
    struct px_buf b = field_begin(member, sizeof member);
    struct px_json j = {.out = &b};

    if (!e)
        return -1;
    px_json_object(&j, NULL);
    px_json_text(&j, key, value);
    px_json_end(&j);
    size_t used = strlen(e->details), comma = used > 0;
    if (b.err < 0 || used + comma + b.len - 2 >= sizeof e->details)
        return -1;
    if (comma)
        e->details[used++] = ',';
    memcpy(e->details + used, member + 1, b.len - 2);   /* without the braces */
    e->details[used + b.len - 2] = '\0';
    return -1;
}

int px_why(struct px_err *e, const char *fmt, ...)
{
    struct args args;

    if (!e)
        return -1;
    va_start(args.list, fmt);
    fill(e->why, sizeof e->why, fmt, &args);
    va_end(args.list);
    return -1;
}

int px_why_lines(struct px_err *e, const char *text)
{
    if (e)
        fill_text(e->why, sizeof e->why, text);
    return -1;
}

int px_fix(struct px_err *e, const char *fmt, ...)
{
    struct args args;

    if (!e)
        return -1;
    va_start(args.list, fmt);
    fill(e->fix, sizeof e->fix, fmt, &args);
    va_end(args.list);
    return -1;
}
