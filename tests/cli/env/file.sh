printf '# a comment\nA=1\n\nB=two words\r\nPASSED\nC="kept"\nA=3' >"$TMP/vars"
PASSED=yes "$PX" exec --env-file "$TMP/vars" -e D=4 -c 'echo "$A|$B|$PASSED|$C|$D"'
