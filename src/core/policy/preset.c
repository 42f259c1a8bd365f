/* The preset table. The preprocessor cannot remember the last PX_PRESET for the PX_SET rows below it, so a row with a NULL
 * field starts a preset and the rows after it belong to it. */
#include "policy/policy.h"

const struct px_preset_row px_preset_rows[] = {
#define PX_PRESET(name, help) {name, NULL, help},
#define PX_SET(field, value) {"", field, value},
#include "presets.def"
#undef PX_PRESET
#undef PX_SET
    {NULL, NULL, NULL},
};
