# A program in a directory without execution is found and not run.
try "$PX" exec --tmpfs /x:noexec -c 'cp /usr/bin/true /x/t && chmod 755 /x/t && /x/t'
