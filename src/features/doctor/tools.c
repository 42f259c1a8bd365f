/* The programs of the host that px needs, and their packages in each distribution. */
#include "base/text.h"
#include "doctor/doctor.h"

// clang-format off
static const struct px_tool tools[] = {         /* packages: other, debian, ubuntu, fedora, arch, alpine */
    { "runc",       PX_NEED_NICE,    "--runtime runc",              false, { NULL, "runc", "runc", "runc", "runc", "runc" } },
    { "crun",       PX_NEED_NICE,    "--runtime crun",              false, { NULL, "crun", "crun", "crun", "crun", "crun" } },
    { "runsc",      PX_NEED_NICE,    "--runtime runsc (gVisor)",    false, { NULL, "runsc", "runsc", NULL, NULL, NULL } },
    { "pasta",      PX_NEED_NICE,    "--net outbound:pasta",        false,
      { NULL, "passt", "passt", "passt", "passt", "passt" } },
    { "newuidmap",  PX_NEED_NICE,    "an ordinary user's own ids",  true,
      { NULL, "uidmap", "uidmap", "shadow-utils", "shadow", "shadow-uidmap" } },
    { "apt-get",    PX_NEED_NICE,    "px sandbox base build",       false,
      { NULL, "apt", "apt", "apt", NULL, NULL } },
    { "uv",         PX_NEED_NICE,    "px sync",                     false, { NULL, NULL, NULL, "uv", "uv", "uv" } },
    { "git",        PX_NEED_NICE,    "px task",                     false, { NULL, "git", "git", "git", "git", "git" } },
    { "bwrap",      PX_NEED_NICE,    "make bench",                  false,
      { NULL, "bubblewrap", "bubblewrap", "bubblewrap", "bubblewrap", "bubblewrap" } },
};
// clang-format on

const struct px_tool *px_doctor_tool_at(size_t index)
{
    return index < PX_COUNT_OF(tools) ? &tools[index] : NULL;
}

void px_doctor_tool_words(const struct px_tool *tool, enum px_family family, char *ret_text, size_t size)
{
    static const char *const installers[PX_FAMILY_COUNT] = {
        "", "apt install", "apt install", "dnf install", "pacman -S", "apk add"};
    if (tool->packages[family])
        (void)px_fmt(ret_text, size, "As root: %s %s", installers[family], tool->packages[family]);
    else if (family == PX_FAMILY_OTHER)
        (void)px_fmt(ret_text, size, "Install %s with the package manager of this distribution", tool->name);
    else
        (void)px_fmt(ret_text, size, "Install %s from its own site: this distribution is not known to have it", tool->name);
}
