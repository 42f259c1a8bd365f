# cp -a forgives the EPERM of a chown that it may not do, and nothing else.
mkdir "$TMP/d"
"$PX" exec -v "$TMP/d:/x" -c 'cp -a /usr/bin/env /x/env && cp -p /usr/bin/env /x/env2 && echo copied; ls /x'
"$PX" exec --work-dir "$TMP/d" -c 'cp -a /usr/bin/env third && echo copied'
cmp /usr/bin/env "$TMP/d/env" && stat -c %u:%a "$TMP/d/env" | sed "s/^$(id -u):/mine:/"
