/* px/verify.h - tests on this host that a box enforces what it promises.
 *
 *     struct px_verify ask = {.make_policy = mine, .attack = "/usr/local/libexec/px/px-attack"};
 *     struct px_verify_report *report = NULL;
 *     if (px_verify_run(&ask, &report, &e) < 0)
 *         return complain(&e);
 *     printf("%zu passed, %zu failed\n", report->passed, report->failed);
 *     px_verify_free(report);
 *
 * Every check starts real boxes with the caller's policy: a forbidden operation must fail and its permitted
 * counterpart must work. The run creates things that no box may touch: a secret file, sockets, IPC objects, a
 * terminal, a key, a process, a descriptor that was left open; and servers (px-outside) that only boxes of the run
 * can reach. All belong to the run and are removed at its end, also if the caller dies.
 *
 * Owns:    a report owns its checks and texts until px_verify_free. The run frees the policies that make_policy gives.
 * Threads: the run forks once, so call it from a program of one thread. While it lasts it keeps a key in the session
 *          keyring and a descriptor without close-on-exec. */
#pragma once

#include <px/px.h>

#ifdef __cplusplus
extern "C" {
#endif

enum px_check_result {
    PX_CHECK_PASSED,
    PX_CHECK_FAILED,
    PX_CHECK_SKIPPED,           /* cannot be tried here */
    PX_CHECK_DIFFERS,           /* fails, but this tier, runtime or policy does not promise it */
};
PX_API const char *px_check_result_name(enum px_check_result result);

struct px_check {
    const char *name;           /* "etc_readonly", "D1_unshare" */
    const char *category;       /* "security", "resources", "network", "functional" or "edge_cases" */
    const char *held_by;        /* the layers that enforce it, each of which suffices: "seccomp+privileges" */
    enum px_check_result result;
    const char *proof;          /* what was observed; may quote a program's output; NULL: nothing */
    const char *reason;         /* why it did not pass; NULL if it did */
    uint64_t nsec;
};

struct px_verify {
    /* A fresh policy for each box, which the run adds to and frees. */
    int (*make_policy)(void *user, struct px_policy **ret_policy, struct px_err *e);
    void (*on_check)(void *user, const struct px_check *check);         /* as they are done, in order; may be NULL */
    void *user;
    const char *attack;         /* the program px-attack; it is copied, and only the copy runs */
    const char *secret;         /* a value in the caller's environment that no box may see; NULL: not checked */
    const char *only;           /* names or prefixes, separated by commas; NULL: all */
    unsigned jobs;              /* boxes at once; 0: 2 */
    uint64_t guard_msec;        /* a box that takes longer has failed; 0: a minute */
    bool self_test;             /* self-test: each check must fail when its mechanism is switched off */
    bool use_stop;              /* end early when this descriptor can be read */
    int stop;
};

struct px_verify_report {
    const char *preset, *base, *runtime;        /* of the policy */
    const char *tier;                           /* that the boxes had */
    const struct px_check *checks;
    size_t count;
    size_t passed, failed, skipped;             /* skipped counts those that differ as well */
    bool self_test, stopped;
};

PX_API int px_verify_run(const struct px_verify *ask, struct px_verify_report **ret_report, struct px_err *e);
PX_API void px_verify_free(struct px_verify_report *report);    /* NULL is fine */

/* Name, category and held_by of each check there is; -1 past the end. */
PX_API int px_verify_row(size_t index, struct px_check *ret_row);
PX_API bool px_verify_chosen(const char *only, const char *name);

/* As one JSON object on one line, and as JUnit XML; free() them. */
PX_API int px_verify_json(const struct px_verify_report *report, char **ret_json, struct px_err *e);
PX_API int px_verify_junit(const struct px_verify_report *report, char **ret_xml, struct px_err *e);

#ifdef __cplusplus
}
#endif
