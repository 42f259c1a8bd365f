# Colour on a terminal, none with NO_COLOR.
need script
coloured() { TERM=xterm script -qec "$PX doctor" /dev/null </dev/null | grep -c "$(printf '\033')\[3" || true; }
[ "$(coloured)" -gt 10 ] && echo colour
export NO_COLOR=1
coloured
