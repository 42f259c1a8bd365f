/* plan/steps.h - adds steps to a plan, one small function for each kind.
 *
 * Why:     builders read like a list of steps. The arena's sticky error holds every failure, and is checked once.
 * Mustn't: decide anything. */
#pragma once

#include <sys/stat.h>

#include "kernel/abi.h"
#include "plan/plan.h"

enum {                          /* attributes of every tree that is not a device */
    PX_STEPS_RO = PX_MOUNT_RDONLY | PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
    PX_STEPS_RW = PX_MOUNT_NOSUID | PX_MOUNT_NODEV,
};

/* A text in the arena; 0 for "" and NULL. */
uint32_t px_steps_text(struct px_plan *plan, const char *text);
/* The same for a path of the host, made absolute: the child has another working directory than the caller. */
uint32_t px_steps_host_path(struct px_plan *plan, const char *path);
enum { PX_STEPS_INSTRUCTION = 8 };      /* bytes of one in a system call filter */
/* Bytes in the arena, aligned for instructions. */
uint32_t px_steps_bytes(struct px_plan *plan, const void *data, size_t length);
/* A copy of a system call filter, aligned for the kernel. */
uint32_t px_steps_program(struct px_plan *plan, const struct sock_filter *code, uint16_t length);
struct px_step *px_steps_add(struct px_plan *plan, enum px_op op);
struct px_step *px_steps_at(struct px_plan *plan, enum px_op op, const char *dst);
void px_steps_dir(struct px_plan *plan, const char *path, unsigned mode, unsigned flags);
/* Directories from the root down to the parent of path (or to path itself), each once. */
void px_steps_dirs(struct px_plan *plan, const char *path, bool itself, unsigned flags);
void px_steps_link(struct px_plan *plan, const char *to, const char *path);
void px_steps_file(struct px_plan *plan, const char *path, const char *content);
/* A bind of an object of the host, pinned to the object that was inspected. */
struct px_step *px_steps_bind(struct px_plan *plan, const char *source, const char *target, unsigned attr, const struct stat *st);
bool px_steps_has(const struct px_plan *plan, enum px_op op, const char *dst);

/* plan/rootfs.c: all steps of the file system, from the root to the pivot. */
int px_rootfs_plan(struct px_plan *plan, const struct px_policy *policy, struct px_err *e);
/* The devices of every box, by path; NULL past the end. */
const char *px_rootfs_device(size_t index);
extern const char px_rootfs_home[];

/* plan/etc.c: the files that px generates; then those of the host for its programs. */
void px_etc_made(struct px_plan *plan, const struct px_policy *policy);
void px_etc_host(struct px_plan *plan, const struct px_policy *policy);
/* Where the host's CA certificates may lie, by path, NULL past the end; and whether a box needs them. */
const char *px_etc_bundle(size_t index);
bool px_etc_wants_bundle(const struct px_policy *policy);
/* Calls the function for each file that programs read, and each directory, which ends with a slash. */
typedef void px_etc_function(struct px_plan *plan, const struct px_policy *policy, const char *path);
void px_etc_each(px_etc_function *function, struct px_plan *plan, const struct px_policy *policy);

/* plan/env.c: the variables, as offsets of texts (the caller's to free), 0 or -ENOMEM; and the candidate paths of
 * the command in the box's PATH, one text after the other. */
int px_plan_environment(struct px_plan *plan, const struct px_policy *policy, uint32_t **ret_offsets, size_t *ret_count);
void px_plan_candidates(struct px_plan *plan, const struct px_policy *policy, const char *command);
/* plan/filter.c: the filter's step; and the file for px-init of a container: struct px_init_filters and the
 * instructions after it, by the offset in the arena. */
void px_plan_add_filter(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host);
uint32_t px_plan_stay_filters(struct px_plan *plan, const struct px_policy *policy, const struct px_host *host);
/* plan/landlock.c: repeats the permissions of the mounts as a second layer; without mounts it alone enforces them. */
void px_plan_landlock(struct px_plan *plan, const struct px_policy *policy);
void px_plan_host_paths(struct px_plan *plan, const struct px_policy *policy);
/* Lists what a tier without namespaces lacks. */
void px_plan_weaker(struct px_plan *plan, const struct px_policy *policy);
/* Whether the filter must enforce a policy without a network, because there is no network namespace. */
bool px_plan_cuts_network(const struct px_plan *plan, const struct px_policy *policy);
