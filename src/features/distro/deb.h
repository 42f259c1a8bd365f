/* distro/deb.h - the offsets of the two archives in a Debian package.
 *
 *     !<arch>\n, then members: 60 bytes of header, the bytes, padded to an even offset:
 *     debian-binary ("2.0\n"), control.tar[.gz|.xz|.zst], data.tar[.gz|.xz|.zst|.bz2]
 *
 * Why:     px-layer unpacks packages, so no program of the host parses their contents.
 * Owns:    nothing.
 * Mustn't: decompress, or look into the archives. */
#pragma once

#include <stdint.h>

struct px_err;

struct px_deb {
    uint64_t control, control_size;             /* where they begin in the file, and how long they are */
    uint64_t data, data_size;
};

/* Reads headers only. -1 with PX814 if it is not a package; `name` is for the words. */
int px_deb_read(int fd, uint64_t size, const char *name, struct px_deb *ret_deb, struct px_err *e);
