#!/bin/bash
# headers.sh REPO BUILD COMPILER... - each public header by itself, and all of them in a small program, as that compiler's user has them.
set -euo pipefail
repo=$1 build=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in "$repo"/include/px/*.h; do
    echo "#include <px/${header##*/}>" >"$work/one"
    cat "$work/one" >>"$work/all"
    "$@" -Wall -Wextra -Werror -I"$repo/include" -fsyntax-only - <"$work/one"
done
cat >>"$work/all" <<'C'
int main(void)
{
    struct px_err e = {PX_OK, 0, "", "", "", ""};
    struct px_policy *policy = NULL;
    int failed = px_policy_new("nothing of that name", &policy, &e) < 0;
    px_policy_free(policy);
    return failed && e.code != PX_OK && e.code != PX_E_INTERNAL ? 0 : 1;
}
C
"$@" -Wall -Wextra -Werror -I"$repo/include" -o "$work/program" - -x none "$build/libpx.so" -Wl,-rpath,"$build" <"$work/all"
"$work/program"
