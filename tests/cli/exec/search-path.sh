# PATH of the box decides, not the caller's.
mkdir "$TMP/bin"
printf '#!/bin/sh\necho mine\n' >"$TMP/bin/ls"
chmod 755 "$TMP/bin" "$TMP/bin/ls"
PATH="$TMP/bin:$PATH" "$PX" exec -c 'command -v ls'
"$PX" exec -v "$TMP/bin:/tools:ro" -e PATH=/tools:/usr/bin:/bin -- ls
