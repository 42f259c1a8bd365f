/* box/disk.h - the limit on what a box writes into the caller's own directories.
 *
 * Why:     the kernel limits the size of a tmpfs. A directory of the host has no such limit, and its file system has
 *          no quota that px could set. So px measures it at intervals and ends the box when it has grown too far. The
 *          box can exceed the limit by what it writes between two measurements.
 * Owns:    its numbers.
 * Mustn't: count what other programs write as the box's. The free space of the file system only decides when to
 *          measure, and shows that something is hidden if the box can hide it (descriptors in flight through a
 *          socket, a mapping or a process that px may not inspect). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_disk {
    bool on, over;
    uint64_t bytes_max, files_max;      /* the growth that is allowed */
    uint64_t bytes_before, files_before;
    uint64_t free_before, nodes_before; /* of all these file systems together */
    uint64_t bytes, files;              /* the largest growth measured */
    bool unread_before;                 /* some directory could not be read when the box began */
    int hidden;                         /* measurements of a loss that the directories do not explain */
    uint64_t looked_nsec, cost_nsec;    /* time and cost of the last measurement */
};

/* disk_held.c: files of these file systems that have no name any more and are held open by a process of the box. */
struct px_disk_held {
    uint64_t bytes, files;
    bool blind;                         /* something could not be inspected */
};
void px_disk_held(const int *fds, size_t count, int init, struct px_disk_held *held);

/* Measures the initial state. fds: the writable directories of the box. */
void px_disk_start(struct px_disk *disk, const int *fds, size_t count, uint64_t bytes_max, uint64_t files_max);
/* Whether it has grown too far. init: pid 1 of the box, whose processes may hold files without a name; 0 once they
 * have ended. */
bool px_disk_over(struct px_disk *disk, const int *fds, size_t count, int init, uint64_t now_nsec);
