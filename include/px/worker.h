/* px/worker.h - workers: the boundaries of an agent, from a file, and the shell tool that keeps them.
 *
 * The shell tool runs a command in a box that shows the roots of a file sandbox and read-only system directories, nothing else.
 * A command that failed is explained: first what the engine itself stopped, then what its own words hint at. */
#pragma once

#include <px/files.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a model should know of a command that failed, in lines, or NULL if there is nothing; free() it. Text that the command
 * wrote is only ever a hint. */
PX_API int px_shell_note(const struct px_files *files, bool network, const struct px_result *result, char **ret_text,
                         struct px_err *e);

#ifdef __cplusplus
}
#endif
