#include "seccomp/builtin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "seccomp/rules.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the names that data/rules.def uses ---- */

#define PERMIT SECCOMP_RET_ALLOW
#define REFUSE(number) (SECCOMP_RET_ERRNO | (number))
#define IN(arg, bits, ...)                                                                                              \
    {                                                                                                                   \
        .argument = (arg), .compare = PX_COMPARE_IN, .count = COUNT_OF(((uint64_t[]){__VA_ARGS__})), .mask = (bits),    \
        .value = {__VA_ARGS__}                                                                                          \
    }

enum {
    SETID = S_ISUID | S_ISGID,
    CREATE = O_CREAT | (O_TMPFILE & ~O_DIRECTORY),      /* of O_TMPFILE the part that the kernel calls __O_TMPFILE */
    NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
    SOCKET_TYPE = 0xf,          /* the kernel's SOCK_TYPE_MASK; above it are SOCK_CLOEXEC and SOCK_NONBLOCK */
};
#define WORD 0xffffffffu
#define ADDRESS INT64_MAX       /* of a process; those with the highest bit are the kernel's */
#ifndef F_SETDELEG
#define F_SETDELEG (1024 + 16)  /* Linux 6.19 */
#endif

/* ---- the tables ---- */

/* Each class is also the number of its decision. */
enum class {
    CLASS_ALLOW,
    CLASS_DENY,
    CLASS_NOSYS,
#define PX_RULE(class, action, ...)
#define PX_OTHERWISE(class, action) CLASS_##class,
#include "rules.def"
#undef PX_RULE
#undef PX_OTHERWISE
    CLASS_COUNT,
    CLASS_OPENAT2 = CLASS_COUNT, /* ALLOW or NOSYS, depending on the filter */
};

static const struct px_rule rules[] = {
#define PX_RULE(class, act, ...)                                                                                        \
    {.action = (act), .count = COUNT_OF(((struct px_condition[]){__VA_ARGS__})), .condition = {__VA_ARGS__}},
#define PX_OTHERWISE(class, act)
#include "rules.def"
#undef PX_RULE
#undef PX_OTHERWISE
};

/* The class of each rule. */
static const uint8_t class_of[] = {
#define PX_RULE(class, action, ...) CLASS_##class,
#define PX_OTHERWISE(class, action)
#include "rules.def"
#undef PX_RULE
#undef PX_OTHERWISE
};

static const uint32_t otherwise[CLASS_COUNT] = {
    [CLASS_ALLOW] = PERMIT,
    [CLASS_DENY] = REFUSE(EPERM),
    [CLASS_NOSYS] = REFUSE(ENOSYS),
#define PX_RULE(class, action, ...)
#define PX_OTHERWISE(class, action) [CLASS_##class] = (action),
#include "rules.def"
#undef PX_RULE
#undef PX_OTHERWISE
};

enum { COLUMNS = 3 };           /* default, strict, floor: in the order of enum px_filter, which has each twice */

static const struct {
    char name[30];
    uint16_t number;
    uint8_t class[COLUMNS];
} rows[] = {
#define PX_SYSCALL(name, number, normal, strict, floor) {#name, number, {CLASS_##normal, CLASS_##strict, CLASS_##floor}},
#include "syscalls.def"
#undef PX_SYSCALL
};

/* The rows in which a build box differs from the default. */
static const struct {
    char name[16];
    uint8_t class;
} build_rows[] = {
#define PX_BUILD(name, class) {#name, CLASS_##class},
#include "build.def"
#undef PX_BUILD
};

static uint8_t class_in(enum px_filter filter, unsigned row)
{
    if (filter != PX_FILTER_BUILD)
        return rows[row].class[filter / 2];
    for (unsigned i = 0; i < COUNT_OF(build_rows); i++)
        if (strcmp(build_rows[i].name, rows[row].name) == 0)
            return build_rows[i].class;
    return rows[row].class[PX_FILTER_DEFAULT / 2];
}

_Static_assert(PX_FILTER_STRICT == 2 && PX_FILTER_FLOOR == 4, "two filters to a column, the second one for a workspace");

const char *px_builtin_row(unsigned index, uint32_t *ret_number)
{
    if (index >= COUNT_OF(rows))
        return NULL;
    *ret_number = rows[index].number;
    return rows[index].name;
}

static void fill_decisions(struct px_calls *calls)
{
    calls->rules = rules;
    calls->order = NULL;
    calls->decisions = CLASS_COUNT;
    for (unsigned i = 0; i < CLASS_COUNT; i++)
        calls->decision[i] = (struct px_decision){.otherwise = otherwise[i]};
    for (unsigned i = 0; i < COUNT_OF(rules); i++) {
        struct px_decision *d = &calls->decision[class_of[i]];
        if (d->count++ == 0)
            d->first = i;
    }
}

int px_builtin_calls(enum px_filter filter, struct px_calls *ret_calls)
{
    struct px_calls *calls = ret_calls;
    bool known[PX_CALLS_MAX] = {false}, workspace = filter % 2 == 1;

    fill_decisions(calls);
    calls->numbers = 0;
    calls->beyond = CLASS_NOSYS;
    for (unsigned i = 0; i < PX_CALLS_MAX; i++)
        calls->of[i] = CLASS_DENY;
    for (unsigned i = 0; i < COUNT_OF(rows); i++) {
        uint16_t number = rows[i].number;
        uint8_t class = class_in(filter, i);

        if (number >= PX_CALLS_MAX || known[number])
            return -EINVAL;
        known[number] = true;
        calls->of[number] = class != CLASS_OPENAT2 ? class : workspace ? CLASS_NOSYS : CLASS_ALLOW;
        calls->numbers = number >= calls->numbers ? (uint16_t)(number + 1) : calls->numbers;
    }
    return 0;
}
