/* fuzz/fuzz.h - what every fuzz target shares.
 *
 * Why:     a target states properties; one that does not hold must end the process whatever NDEBUG says.
 * Mustn't: be linked into the product. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(property)                                                                         \
    do {                                                                                        \
        if (!(property)) {                                                                      \
            (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #property);      \
            abort();                                                                            \
        }                                                                                       \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a text in memory of exactly its size, so that a sanitizer sees one byte too many; free() it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    text[size] = 0;
    return text;
}
