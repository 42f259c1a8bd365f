# NAME=VALUE, NAME from the caller, a NAME that the caller does not have, and the last one wins.
export PASSED='from the caller' OTHER=not-named
"$PX" exec -e PASSED -e ABSENT -e A=1 -e A=2 -e EMPTY= -e 'SPACE=a b' -c 'echo "$PASSED|${ABSENT-absent}|$A|${EMPTY-unset}|$SPACE|${OTHER-absent}|${CALLER_SECRET-absent}"'
