/* gen-filter - compiles data/syscalls.def to the seccomp programs of px and prints them as C arrays.
 *
 * Why not libseccomp's compiler: it cannot say "every value but these four", and spends an instruction or two on each
 * call where one comparison covers a whole run of neighbours. It serves as the second opinion on names and numbers.
 *
 * The program: the architecture, then a search tree over runs of numbers with the same class, then one short block for
 * each class. x32 numbers need no test of their own: they lie in the last run, above every known number.
 *
 * When the filter is loaded the kernel follows it for each number to find the calls that are always allowed, so a short
 * way to every number counts, and no argument is loaded before the number is settled. Loading takes 55 us; it was 120
 * with libseccomp's tree and 295 with its list. A tree weighted by the length of the runs saved 3 us and was not worth
 * its code. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* What becomes of a call. Each class is also the label of its block in the program. */
enum class {
    CLASS_ALLOW,
    CLASS_DENY,
    CLASS_NOSYS,
    CLASS_NO_FAMILY,            /* EAFNOSUPPORT; reached from SOCKET and PAIR only */
    CLASS_CLONE,
    CLASS_IOCTL,
    CLASS_SOCKET,
    CLASS_PAIR,
    CLASS_PERSONALITY,
    CLASS_SELF,
    CLASS_PRCTL,
    CLASS_MODE_1,
    CLASS_MODE_2,
    CLASS_NODE_1,
    CLASS_NODE_2,
    CLASS_OPEN_1,
    CLASS_OPEN_2,
    CLASS_OPENAT2,              /* stands for ALLOW or NOSYS, as the profile says */
    CLASS_COUNT,
};

enum {
    NUMBER_MAX = 1024,          /* a bound for the table, not for the kernel */
    RUNS_MAX = 256,
    CODE_MAX = 1024,
    LABELS_MAX = 1024,
    NEXT = -1,                  /* in place of a label: the instruction that follows */
    SETID = S_ISUID | S_ISGID,
    /* Only in the kernel's own headers: the part of O_TMPFILE that is not O_DIRECTORY. */
    TMPFILE = O_TMPFILE & ~O_DIRECTORY,
    NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                 CLONE_NEWNET,
};

static const struct row {
    const char *name;
    uint32_t number;
    enum class class;
} rows[] = {
#define PX_SYSCALL(name, number, class) {#name, number, CLASS_##class},
#include "syscalls.def"
#undef PX_SYSCALL
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct profile {
    const char *name;
    enum class openat2;
} profiles[] = {
    {"default", CLASS_ALLOW},
    {"workspace", CLASS_NOSYS},
};

/* Numbers first..(first of the next run - 1) of one class. The last run has no end. */
struct run {
    uint32_t first;
    enum class class;
};

struct program {
    struct sock_filter code[CODE_MAX];
    int if_true[CODE_MAX];      /* labels, for the jumps among the instructions */
    int if_false[CODE_MAX];
    int count;
    int label_at[LABELS_MAX];
    int labels;
};

struct runs {
    struct run run[RUNS_MAX];
    int count;
};

static _Noreturn void fail(const char *what, const char *name)
{
    (void)fprintf(stderr, "gen-filter: %s: %s\n", name, what);
    _Exit(1);                   /* without flushing: half a program must not look like one */
}

/* ---- the table ---- */

static void check_name(const struct row *row)
{
    int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, row->name);

    if (number >= 0 && (uint32_t)number != row->number)
        fail("libseccomp knows this call by another number", row->name);
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, (int)row->number);
    if (name && strcmp(name, row->name) != 0)
        fail("libseccomp knows this number by another name", row->name);
    free(name);
}

/* Every call that libseccomp knows needs a decision of ours. */
static void check_complete(const bool known[NUMBER_MAX], uint32_t highest)
{
    for (uint32_t i = 0; i <= highest; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, (int)i);
        if (name && !known[i])
            fail("the table has no row for this call", name);
        free(name);
    }
}

static enum class class_in(const struct profile *profile, enum class class)
{
    return class == CLASS_OPENAT2 ? profile->openat2 : class;
}

/* Fills classes for all numbers up to the highest known, which it returns. */
static uint32_t read_table(const struct profile *profile, enum class classes[NUMBER_MAX])
{
    bool known[NUMBER_MAX] = {false};
    uint32_t highest = 0;

    for (int i = 0; i < NUMBER_MAX; i++)
        classes[i] = CLASS_DENY;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].number >= NUMBER_MAX - 1)
            fail("the number is out of bounds", rows[i].name);
        if (known[rows[i].number])
            fail("the number is there twice", rows[i].name);
        check_name(&rows[i]);
        known[rows[i].number] = true;
        classes[rows[i].number] = class_in(profile, rows[i].class);
        highest = rows[i].number > highest ? rows[i].number : highest;
    }
    check_complete(known, highest);
    return highest;
}

static void find_runs(struct runs *runs, const struct profile *profile)
{
    enum class classes[NUMBER_MAX];
    uint32_t highest = read_table(profile, classes);

    classes[highest + 1] = CLASS_NOSYS;
    for (uint32_t i = 0; i <= highest + 1; i++) {
        if (i > 0 && classes[i] == classes[i - 1])
            continue;
        if (runs->count == RUNS_MAX)
            fail("too many runs", profile->name);
        runs->run[runs->count++] = (struct run){.first = i, .class = classes[i]};
    }
}

/* ---- the assembler ---- */

static void emit(struct program *p, uint16_t code, uint32_t k, int if_true, int if_false)
{
    if (p->count == CODE_MAX)
        fail("the program is too long", "emit");
    p->code[p->count] = (struct sock_filter){.code = code, .k = k};
    p->if_true[p->count] = if_true;
    p->if_false[p->count] = if_false;
    p->count++;
}

static void emit_load(struct program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

/* The low half of an argument; x86-64 is little-endian. */
static void emit_argument(struct program *p, int i)
{
    emit_load(p, offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t));
}

static void emit_and(struct program *p, uint32_t mask)
{
    emit(p, BPF_ALU | BPF_AND | BPF_K, mask, NEXT, NEXT);
}

static void emit_if_equal(struct program *p, uint32_t value, int if_true, int if_false)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, if_true, if_false);
}

static void emit_if_any(struct program *p, uint32_t bits, int if_true, int if_false)
{
    emit(p, BPF_JMP | BPF_JSET | BPF_K, bits, if_true, if_false);
}

static void emit_return(struct program *p, uint32_t action)
{
    emit(p, BPF_RET | BPF_K, action, NEXT, NEXT);
}

static int new_label(struct program *p)
{
    if (p->labels == LABELS_MAX)
        fail("too many labels", "new_label");
    p->label_at[p->labels] = NEXT;
    return p->labels++;
}

static void place(struct program *p, int label)
{
    p->label_at[label] = p->count;
}

/* Conditional jumps reach 255 instructions; the whole program is shorter than that, and must stay so. */
static uint8_t distance(const struct program *p, int from, int label)
{
    if (label == NEXT)
        return 0;
    int d = p->label_at[label] - (from + 1);
    if (p->label_at[label] == NEXT || d < 0 || d > UINT8_MAX)
        fail("a jump leads nowhere, back or too far", "distance");
    return (uint8_t)d;
}

static void resolve(struct program *p)
{
    for (int i = 0; i < p->count; i++) {
        p->code[i].jt = distance(p, i, p->if_true[i]);
        p->code[i].jf = distance(p, i, p->if_false[i]);
    }
}

/* ---- the program ---- */

/* Tells runs from..to apart, at least two of them. A half of one run is the class's own block; of two larger halves the
 * left one follows at once. */
static void emit_tree(struct program *p, const struct run *run, int from, int to)
{
    int middle = (from + to + 1) / 2;
    bool left_is_run = from == middle - 1, right_is_run = middle == to;
    int left = left_is_run ? (int)run[from].class : NEXT;
    int right = right_is_run ? (int)run[to].class : new_label(p);

    emit(p, BPF_JMP | BPF_JGE | BPF_K, run[middle].first, right, left);
    if (!left_is_run)
        emit_tree(p, run, from, middle - 1);
    if (!right_is_run) {
        place(p, right);
        emit_tree(p, run, middle, to);
    }
}

static void emit_start(struct program *p)
{
    int native = new_label(p);

    emit_load(p, offsetof(struct seccomp_data, arch));
    emit_if_equal(p, AUDIT_ARCH_X86_64, native, NEXT);
    emit_return(p, SECCOMP_RET_KILL_PROCESS);
    place(p, native);
    emit_load(p, offsetof(struct seccomp_data, nr));
}

static void emit_simple_rules(struct program *p)
{
    place(p, CLASS_CLONE);
    emit_argument(p, 0);
    emit_if_any(p, NAMESPACES, CLASS_DENY, CLASS_ALLOW);

    place(p, CLASS_IOCTL);
    emit_argument(p, 1);
    emit_if_equal(p, TIOCSTI, CLASS_DENY, NEXT);
    emit_if_equal(p, TIOCLINUX, CLASS_DENY, NEXT);
    emit_if_equal(p, TIOCCONS, CLASS_DENY, NEXT);
    emit_if_equal(p, TIOCSETD, CLASS_DENY, CLASS_ALLOW);

    place(p, CLASS_PERSONALITY);
    emit_argument(p, 0);
    emit_if_equal(p, 0, CLASS_ALLOW, NEXT);
    emit_if_equal(p, 0xffffffff, CLASS_ALLOW, CLASS_DENY);

    place(p, CLASS_SELF);
    emit_argument(p, 0);
    emit_if_equal(p, 0, CLASS_ALLOW, CLASS_DENY);

    place(p, CLASS_PRCTL);
    emit_argument(p, 0);
    emit_if_equal(p, PR_SET_MM, CLASS_DENY, NEXT);
    emit_if_equal(p, PR_SET_PTRACER, CLASS_DENY, CLASS_ALLOW);
}

static void emit_socket_rules(struct program *p)
{
    int internet = new_label(p), netlink = new_label(p);

    place(p, CLASS_SOCKET);
    emit_argument(p, 0);
    emit_if_equal(p, AF_UNIX, CLASS_ALLOW, NEXT);
    emit_if_equal(p, AF_INET, internet, NEXT);
    emit_if_equal(p, AF_INET6, internet, NEXT);
    emit_if_equal(p, AF_NETLINK, netlink, CLASS_NO_FAMILY);
    place(p, internet);
    emit_argument(p, 1);
    emit_and(p, 0xf);           /* the kernel's SOCK_TYPE_MASK; above it are SOCK_CLOEXEC and SOCK_NONBLOCK */
    emit_if_equal(p, SOCK_STREAM, CLASS_ALLOW, NEXT);
    emit_if_equal(p, SOCK_DGRAM, CLASS_ALLOW, CLASS_NO_FAMILY);
    place(p, netlink);
    emit_argument(p, 2);
    emit_if_equal(p, 0, CLASS_ALLOW, CLASS_NO_FAMILY);

    place(p, CLASS_PAIR);
    emit_argument(p, 0);
    emit_if_equal(p, AF_UNIX, CLASS_ALLOW, CLASS_NO_FAMILY);
}

static void emit_mode_rule(struct program *p, enum class class, int mode)
{
    place(p, class);
    emit_argument(p, mode);
    emit_if_any(p, SETID, CLASS_DENY, CLASS_ALLOW);
}

static void emit_node_rule(struct program *p, enum class class, int mode)
{
    place(p, class);
    emit_argument(p, mode);
    emit_and(p, S_IFMT | SETID);
    emit_if_equal(p, 0, CLASS_ALLOW, NEXT);     /* no type means a regular file */
    emit_if_equal(p, S_IFREG, CLASS_ALLOW, NEXT);
    emit_if_equal(p, S_IFIFO, CLASS_ALLOW, NEXT);
    emit_if_equal(p, S_IFSOCK, CLASS_ALLOW, CLASS_DENY);
}

static void emit_open_rule(struct program *p, enum class class, int flags)
{
    place(p, class);
    emit_argument(p, flags);
    emit_if_any(p, O_CREAT | TMPFILE, NEXT, CLASS_ALLOW);
    emit_argument(p, flags + 1);
    emit_if_any(p, SETID, CLASS_DENY, CLASS_ALLOW);
}

static void emit_file_rules(struct program *p)
{
    emit_mode_rule(p, CLASS_MODE_1, 1);
    emit_mode_rule(p, CLASS_MODE_2, 2);
    emit_node_rule(p, CLASS_NODE_1, 1);
    emit_node_rule(p, CLASS_NODE_2, 2);
    emit_open_rule(p, CLASS_OPEN_1, 1);
    emit_open_rule(p, CLASS_OPEN_2, 2);
}

static void emit_ends(struct program *p)
{
    place(p, CLASS_ALLOW);
    emit_return(p, SECCOMP_RET_ALLOW);
    place(p, CLASS_DENY);
    emit_return(p, SECCOMP_RET_ERRNO | EPERM);
    place(p, CLASS_NOSYS);
    emit_return(p, SECCOMP_RET_ERRNO | ENOSYS);
    place(p, CLASS_NO_FAMILY);
    emit_return(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void compile(struct program *p, const struct profile *profile)
{
    struct runs runs = {.count = 0};

    find_runs(&runs, profile);
    for (int i = 0; i < CLASS_COUNT; i++)
        (void)new_label(p);
    emit_start(p);
    emit_tree(p, runs.run, 0, runs.count - 1);
    emit_simple_rules(p);
    emit_socket_rules(p);
    emit_file_rules(p);
    emit_ends(p);
    resolve(p);
}

static void print(const struct program *p, const struct profile *profile)
{
    (void)printf("\nstatic const struct sock_filter px_filter_%s[] = {\n", profile->name);
    for (int i = 0; i < p->count; i++)
        (void)printf("    {0x%02x, %u, %u, 0x%08x}, /* %d */\n", (unsigned)p->code[i].code, (unsigned)p->code[i].jt,
                     (unsigned)p->code[i].jf, p->code[i].k, i);
    (void)printf("};\n");
}

int main(void)
{
    static struct program program;

    (void)printf("/* Made by gen-filter from syscalls.def. */\n");
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        program = (struct program){.count = 0};
        compile(&program, &profiles[i]);
        print(&program, &profiles[i]);
    }
    return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : 1;
}
