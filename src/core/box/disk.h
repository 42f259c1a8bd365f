/* box/disk.h - the bound on what a box writes into the caller's own directories.
 *
 * Why:     a tmpfs of ours has a size that the kernel holds; a directory of the host has none, and its file system has no quota
 *          that anybody could set. So it is watched, and the box ended when it has grown too far: a bound that is reached late
 *          by what can be written in one look's time.
 * Owns:    its numbers.
 * Mustn't: blame the box for what its neighbours write: the free space of the file system only says when to look closely, and
 *          that something is hidden if the box has a place to hide it (descriptors on their way through a socket, a mapping or a
 *          process that px may not look at). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_disk {
    bool on, over;
    uint64_t bytes_max, files_max;      /* growth that is allowed */
    uint64_t bytes_before, files_before;
    uint64_t free_before, nodes_before; /* of all file systems concerned, together */
    uint64_t bytes, files;              /* the largest growth that was seen */
    bool unread_before;                 /* a part of a directory could not be read when the box began */
    int hidden;                         /* looks at a loss that was not found in the directories */
    uint64_t looked_nsec, cost_nsec;    /* the last close look, and what it took */
};

/* disk_held.c: files of these file systems that have no name any more, and are held by a process of a box. */
struct px_disk_held {
    uint64_t bytes, files;
    bool blind;                         /* there is something that could not be looked at */
};
void px_disk_held(const int *fds, size_t count, int init, struct px_disk_held *held);

/* Measures where the box starts from. fds: its writable directories. */
void px_disk_start(struct px_disk *disk, const int *fds, size_t count, uint64_t bytes_max, uint64_t files_max);
/* Whether it has grown too far by now. init: pid 1 of the box, whose processes may hold files that have no name any more; 0
 * once they are gone. */
bool px_disk_over(struct px_disk *disk, const int *fds, size_t count, int init, uint64_t now_nsec);
