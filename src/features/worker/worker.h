/* worker/worker.h - the structure of a worker, for the files of worker/.
 *
 * Why:     its file is read in one place, its rules are asked in another, its commands run in a third.
 * Owns:    its texts and its files.
 * Mustn't: change once it is read. */
#pragma once

#include <px/worker.h>

#include "config/yaml.h"

enum { PX_WORKER_RULES = 256, PX_WORKER_PREFIX = 16, PX_WORKER_ATTACHMENTS = 64, PX_WORKER_TOOLS = 16 };

struct px_rule {
    char **prefix; /* the first words of a command; NULL-terminated */
    bool approval;
    const struct px_yaml *paths; /* names of roots in which every argument must lie; NULL: anywhere */
};

struct px_tool_rule {
    bool denied, approval;
};

struct px_worker {
    struct px_yaml *file;
    char *name, *place; /* the file's name, and the directory it lies in */
    char *base;         /* the directory that its roots are relative to, on the host */
    struct px_files *files;
    bool network, require_os_sandbox, git_writable;
    const struct px_yaml *allow_net, *deny_net, *env;   /* lists of texts and a map of them; NULL: none */
    const char *memory, *box_base;
    struct px_tool_rule tools[PX_WORKER_TOOLS]; /* by px_worker_tool_at */
    struct px_rule rules[PX_WORKER_RULES];
    size_t rules_count;
    bool has_default, default_approval;
    uint64_t max_attachments, max_attachment_bytes;
    const struct px_yaml *attachment_suffixes, *children; /* NULL: any; none */
};

/* The table [tool.px.worker] of a pyproject.toml, as a worker's own file; `name` is for errors. */
int px_worker_toml(const char *name, const char *data, size_t len, struct px_yaml **ret_root, struct px_err *e);
/* The tools that a worker can have, by their number: NULL past the end. */
const char *px_worker_tool_at(size_t index);
