# Input in a pipe that the command does not get is said; nothing is said where it is passed on, empty or not wanted.
echo x | "$PX" exec -- cat 2>&1
echo x | "$PX" exec -i -- cat 2>&1
echo x | "$PX" -q exec -- cat 2>&1
: | "$PX" exec -- cat 2>&1
"$PX" exec -- cat 2>&1 </dev/null
echo end
