/* pep/marker.h - requirements and their conditions (PEP 508): name, extras, range, marker.
 *
 * Why:     a lock has markers for each package; they are evaluated for the base, not for the host.
 * Owns:    nothing; texts are the caller's.
 * Mustn't: look at the host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The values of a marker's variables (all of PEP 508); NULL counts as "". */
struct px_marker_env {
    const char *implementation_name;            /* cpython */
    const char *implementation_version;         /* 3.11.2 */
    const char *os_name;                        /* posix */
    const char *platform_machine;               /* x86_64 */
    const char *platform_python_implementation; /* CPython */
    const char *platform_release, *platform_version;    /* the kernel's release: always empty here */
    const char *platform_system;                /* Linux */
    const char *python_full_version;            /* 3.11.2 */
    const char *python_version;                 /* 3.11 */
    const char *sys_platform;                   /* linux */
    const char *const *extras;                  /* NULL-terminated; what `extra ==` is compared with; NULL: none */
};

/* 1: true, 0: false, -EINVAL. An empty marker is true. */
int px_marker_holds(const char *marker, const struct px_marker_env *env);

/* A requirement in its parts; all point into the text. */
struct px_requirement {
    const char *name, *extras, *range, *url, *marker;
    size_t name_length, extras_length, range_length, url_length, marker_length;
};
int px_marker_requirement_parse(const char *text, struct px_requirement *ret_requirement);

/* "Foo_Bar.baz" -> "foo-bar-baz" (PEP 503). -ENAMETOOLONG, -EINVAL. */
int px_marker_package_name(const char *text, size_t length, char *out, size_t size);
