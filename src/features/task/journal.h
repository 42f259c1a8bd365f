/* task/journal.h - one file of JSON lines for each task, appended by many processes at once.
 *
 * Why:     a journal is read while it is written; a line must never be partial or duplicated.
 * Owns:    DIR/ID.jsonl and its older parts ID.jsonl.1 to ID.jsonl.4.
 * Mustn't: follow a link, or leave a partial line before a complete one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PX_JOURNAL_PARTS = 4 };

/* Appends one line, given without its newline. 0 or -errno; on failure nothing of it is written. */
int px_journal_append(int dir, const char *id, const char *line, size_t len, uint64_t bytes_max);
/* Whether one of the last lines (1 MiB of them) holds the text. */
bool px_journal_has(int dir, const char *id, const char *text);
/* Part 0 is the newest. The file open for reading, or -errno. */
int px_journal_open(int dir, const char *id, int part);
