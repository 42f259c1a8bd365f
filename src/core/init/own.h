/* init/own.h - what an ordinary command touches of pid 1's memory, in one page.
 *
 * Why:     a thousand boxes have a thousand copies of it. Everything is static; no memory is allocated. Tables that
 *          few boxes need are elsewhere, and their pages are never touched.
 * Owns:    nothing.
 * Mustn't: grow beyond its page: the upper end of the stack, the first rows, a short request and its words are in it
 *          too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "init/wire.h"

enum { PX_OWN_PAGE = 4096, PX_OWN_STACK = 3 * PX_OWN_PAGE + 1536, PX_OWN_ROWS = 16 };

struct px_init_row {            /* a running command; pid 0: none */
    int pid, reply;
    bool shared;                /* another command ran at the same time */
    bool ends;                  /* it is being killed: the report is sent when all its processes are dead */
    uint16_t full;              /* bit N: the Nth directory was already full when it began */
};

struct px_init_own {
    char stack[PX_OWN_STACK];   /* of the child, until its exec */
    struct px_init_row few[PX_OWN_ROWS];
    uint32_t sharing;           /* 1 while a child uses our memory; cleared by the kernel */
    int owner;                  /* the control socket */
    char **directories;         /* whose fill level is reported; the first 16 */
    struct {                    /* filter.c */
        uint16_t program_length;        /* of each command's own filter; 0: none */
        uint32_t listens;               /* which filter has a listener */
        /* the socket pair through which a child passes the listener of its own filter */
        int inbox[2];
    } filter;
    struct {                    /* denials.c */
        int listeners_count, box_listener, notes, alone;
        bool ours;                      /* the filter is one of px's, so there is a box_listener */
    } refused;
    struct {
        struct px_init_request request;
        char text[PX_INIT_TEXT_MAX];
    } message;
    char *words[PX_INIT_WORDS_MAX + 4];         /* begins after a text that leaves room, see words_after */
};

extern struct px_init_own px_own;
