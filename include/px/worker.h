/* px/worker.h - workers: the boundaries of an agent, from a file, and the shell tool that enforces them.
 *
 *     sandbox:
 *       paths:
 *         portfolio: {root: ./portfolio, mode: rw, suffixes: [.md, .pdf], max_file_bytes: 10000000}
 *         pipeline: {root: ./pipeline}
 *       network: {allow: [pypi.org]}
 *       require_os_sandbox: false
 *       memory: 512m
 *       env: {LANG: C.UTF-8}
 *       base: debian-12
 *     tool_rules:
 *       write_file: {approval_required: true}
 *     shell_rules:
 *       - {pattern: git status, approval_required: false}
 *
 * The shell tool runs a command line in a box that shows the roots of the worker and read-only system directories,
 * nothing else. A failed command is explained: first what px itself stopped, then hints from its output.
 *
 * Owns:    a px_worker owns its px_files, which px_worker_files lends; a policy of px_worker_policy is freed before it.
 * Threads: a px_worker never changes once it is loaded: several threads may use one at once. */
#pragma once

#include <px/files.h>

#ifdef __cplusplus
extern "C" {
#endif

struct px_worker;

/* A file of its own, or a project's pyproject.toml, whose table [tool.px.worker] has the same keys. Roots are below
 * `base`; NULL: the working directory, or the directory of the pyproject.toml. */
PX_API int px_worker_load(const char *path, const char *base, struct px_worker **ret_worker,
                          struct px_err *e);
PX_API void px_worker_free(struct px_worker *worker);
PX_API const struct px_files *px_worker_files(const struct px_worker *worker);
PX_API bool px_worker_network(const struct px_worker *worker);
/* Its boundaries as text and as JSON; free() both. */
PX_API int px_worker_describe(const struct px_worker *worker, char **ret_text, char **ret_json,
                              struct px_err *e);

enum px_approval { PX_BLOCKED, PX_NEEDS_APPROVAL, PX_PRE_APPROVED };
PX_API const char *px_approval_name(enum px_approval approval);
/* The verdict of the worker's tool_rules on a tool: "shell", "worker_call", or one for files, by its name ("read_file")
 * or by that of its operation in px_files_call ("read"). PX_BLOCKED, with *e: the worker does not have it, or there is
 * no such tool. */
PX_API enum px_approval px_worker_tool(const struct px_worker *worker, const char *tool, struct px_err *e);
/* A command line: the rules are applied to each command, and the strictest verdict counts. argv is what to run, freed
 * by px_words_free: the words of a single command, or a shell with text made of the parsed commands. A line that cannot
 * be parsed (variables, substitutions, loops) gets the strictest verdict that any command can get, and is then run as
 * it is. Fails only without memory: what cannot be run is PX_BLOCKED, with the reason in *e. */
PX_API enum px_approval px_worker_judge(const struct px_worker *worker, const char *command, char ***ret_argv,
                                        struct px_err *e);
PX_API void px_words_free(char **words);

/* Opens a file that the worker may pass to another one; close() it. */
PX_API int px_worker_attach(const struct px_worker *worker, const char *path, int *ret_fd,
                            uint64_t *ret_bytes, struct px_err *e);
/* Whether the worker may call another one by this name, and the file of that one: free() it. */
PX_API int px_worker_child(const struct px_worker *worker, const char *name, char **ret_path,
                           struct px_err *e);

/* The shell tool. Attachments appear read-only as /attachments/NAME. */
struct px_worker_run {
    unsigned timeout_s;             /* 1 to 300; 0: 30 */
    const char *const *attachments; /* NULL-terminated: of `from`'s sandbox; NULL: none */
    const struct px_worker *from;
};
PX_API int px_worker_start(const struct px_worker *worker, const char *const argv[],
                           const struct px_worker_run *how, struct px_box **ret_box, struct px_err *e);
/* The policy of the shell tool's box, for a caller that starts it itself (px_box_stay): the roots at /workspace, the OS
 * sandbox always required, and a timeout of 30 seconds. px_policy_free() it before the worker. */
PX_API int px_worker_policy(const struct px_worker *worker, struct px_policy **ret_policy, struct px_err *e);
/* The answer to a model about a command that ended: {"ok", "stdout", "stderr", "exit_code", "truncated", "note"};
 * free() it. */
PX_API int px_worker_result(const struct px_worker *worker, const struct px_box *box, unsigned timeout_s,
                            char **ret_json, struct px_err *e);

/* An explanation of a failed command for a model, in lines, or NULL; free() it. The command's own output is only used
 * for hints. */
PX_API int px_shell_note(const struct px_files *files, bool network, const struct px_result *result,
                         char **ret_text, struct px_err *e);

#ifdef __cplusplus
}
#endif
