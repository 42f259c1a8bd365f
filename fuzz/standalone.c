/* fuzz/standalone.c - runs a fuzz target without a fuzzer: over files, and over pseudo-random inputs.
 *
 * `target [-n COUNT] [-s SEED] [-m MAX] [FILE|DIRECTORY]...` runs every file once, then COUNT inputs made from SEED (1000 if
 * no file is given either). The same seed makes the same inputs everywhere. Prints "N inputs" at the end; a property that
 * does not hold aborts, and the number of the input that did it is told. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { FILE_SIZE_MAX = 1 << 20, RANDOM_SIZE_MAX = 4096, DEPTH_MAX = 8 };

static char current[512];               /* what runs now, for the handler below; a program may have globals */

static void on_abort(int number)
{
    static const char words[] = "failed on ";

    (void)!write(2, words, sizeof words - 1);
    (void)!write(2, current, strlen(current));
    (void)!write(2, "\n", 1);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* xorshift64*: small, known, the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

/* Bytes of every kind, and bytes of the alphabets that the targets' grammars are made of. */
static uint8_t random_byte(uint64_t *state, unsigned kind)
{
    static const char *const alphabets[] = {
        "0123456789", "0123456789.kKmMgGtTiIbB", "0123456789.dhms", "/.a", "//..ab/",
        "\xc2\x80\xe2\x82\xac\xed\xa0\xf0\x9f\x98\xf4\x8f\xbf\xe0\x41",
    };
    enum { ALPHABETS = sizeof alphabets / sizeof alphabets[0] };
    uint64_t r = next_random(state) >> 16;

    if (kind % (ALPHABETS + 2) >= ALPHABETS)
        return (uint8_t)r;
    const char *alphabet = alphabets[kind % (ALPHABETS + 2)];
    return (uint8_t)alphabet[r % strlen(alphabet)];
}

/* Short inputs are the likely ones: that is where the grammars live. */
static size_t random_input(uint64_t *state, uint8_t *out, size_t max)
{
    unsigned kind = (unsigned)(next_random(state) >> 32);
    size_t limit = next_random(state) >> 61 ? (max < 24 ? max : 24) : max;
    size_t size = (size_t)((next_random(state) >> 16) % (limit + 1));

    for (size_t i = 0; i < size; i++)
        out[i] = random_byte(state, kind);
    if (kind & 0x10000 && kind % 8 == 3 && size > 0)
        out[0] = '/';
    return size;
}

static long run_random(long count, uint64_t seed, size_t max)
{
    static uint8_t input[RANDOM_SIZE_MAX];

    for (long i = 0; i < count; i++) {
        /* Each input has a state of its own, so that one number names it. */
        uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ULL + (uint64_t)i * 0xbf58476d1ce4e5b9ULL;

        state = state ? state : 1;
        for (int warm = 0; warm < 3; warm++)
            (void)next_random(&state);
        (void)snprintf(current, sizeof current, "random input %ld of seed %llu", i, (unsigned long long)seed);
        (void)LLVMFuzzerTestOneInput(input, random_input(&state, input, max));
    }
    return count;
}

static long run_file(int fd, const char *name)
{
    uint8_t *data = malloc(FILE_SIZE_MAX);
    size_t size = 0;
    ssize_t n;

    if (!data)
        abort();
    (void)snprintf(current, sizeof current, "%s", name);
    while (size < FILE_SIZE_MAX && (n = read(fd, data + size, FILE_SIZE_MAX - size)) > 0)
        size += (size_t)n;
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static long run_path(int parent, const char *name, int depth);

static long run_dir(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    long count = 0;

    while (dir && depth > 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            count += run_path(fd, entry->d_name, depth - 1);
    if (dir)
        (void)closedir(dir);
    return count;
}

static long run_path(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)fprintf(stderr, "%s: %s\n", name, strerror(errno));
        exit(1);
    }
    if (S_ISDIR(st.st_mode))
        return run_dir(fd, depth);      /* which closes fd */
    long count = run_file(fd, name);
    (void)close(fd);
    return count;
}

/* Exits unless text is a plain number. */
static unsigned long long number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end) {
        (void)fprintf(stderr, "'%s' is not a number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    long count = -1, done = 0;
    uint64_t seed = 1;
    size_t max = 256;
    int option;

    while ((option = getopt(argc, argv, "n:s:m:")) != -1) {
        if (option == 'n')
            count = (long)number(optarg);
        else if (option == 's')
            seed = number(optarg);
        else if (option == 'm')
            max = (size_t)number(optarg);
        else
            return 2;
    }
    if (max > RANDOM_SIZE_MAX)
        max = RANDOM_SIZE_MAX;
    if (count < 0)
        count = optind < argc ? 0 : 1000;
    (void)signal(SIGABRT, on_abort);
    for (int i = optind; i < argc; i++)
        done += run_path(AT_FDCWD, argv[i], DEPTH_MAX);
    done += run_random(count, seed, max);
    (void)printf("%ld inputs\n", done);
    return 0;
}
