/* files/stat.h - a mode's kind in our words. */
#pragma once

#include <px/files.h>
#include <sys/types.h>

enum px_files_kind px_stat_kind(mode_t mode);
