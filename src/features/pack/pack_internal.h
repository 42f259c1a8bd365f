/* pack/pack_internal.h - one packing, for the files of pack/.
 *
 * Owns:    what struct px_pack_job holds, until the packing is over.
 * Mustn't: be included elsewhere. */
#pragma once

#include <jansson.h>

#include <px/sandbox.h>

#include "compose/compose.h"
#include "pack/pack.h"
#include "project/image.h"
#include "transfer/worktree.h"

struct px_pack_job {
    struct px_project *p;
    const struct px_project_pack *how;
    struct px_ready ready;
    struct px_image_build build;        /* the same, for those who put images together */
    struct px_sandbox *s;
    enum px_compression compression;
    struct px_worktree files;
    struct px_pack_command command;
    struct px_app app;
    struct px_project_image sandbox;
    char name[PX_PACK_NAME_SIZE];
    struct px_image image;              /* what was made */
    json_t *record;
    bool base_is_given;                 /* check_repro: it was imported, and could not be made again */
};

/* pack.c: lists the files, and packs them as a layer. */
int px_pack_files(struct px_pack_job *k, bool status, struct px_err *e);
int px_pack_app(struct px_pack_job *k, enum px_compression compression, struct px_layer *ret_layer, struct px_err *e);
/* check.c: builds everything again from the packages. PX904 with details.layer and details.path if the image
 * differs. */
int px_pack_check(struct px_pack_job *k, struct px_err *e);
/* answer.c */
int px_pack_answer(const struct px_pack_job *k, char **ret_json, struct px_err *e);
