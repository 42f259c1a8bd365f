# Also for the result itself and for the help.
status=0
"$PX" --json exec -- true >/dev/full || status=$?
[ $status -ne 0 ] && echo json
status=0
"$PX" exec --help >/dev/full || status=$?
[ $status -ne 0 ] && echo help
status=0
"$PX" --version >/dev/full || status=$?
[ $status -ne 0 ] && echo version
status=0
"$PX" policy show >/dev/full || status=$?
[ $status -ne 0 ] && echo policy
status=0
"$PX" exec --plan -- true >/dev/full || status=$?
[ $status -ne 0 ] && echo plan
