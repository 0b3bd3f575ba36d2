# Sourced: runs parts of a check one after the other, all of them also after a failure, and sums up.
#
#   part NAME COMMAND…     runs the command; its output is shown, its time and outcome are kept
#   left_out NAME REASON   says in one line what is not done; a failure where HDFSCKPT_REQUIRE=all
#   summary                prints the table; its status is 0 only if no part failed

parts_names=()
parts_seconds=()
parts_results=()
parts_begin=$SECONDS

part() {
  local name=$1 begin=$SECONDS result=passed
  shift
  printf '\n=== %s\n' "$name"
  "$@" || result=FAILED
  record "$name" $((SECONDS - begin)) "$result"
}

left_out() {
  local result="left out"
  [ "${HDFSCKPT_REQUIRE:-}" != all ] || result=FAILED
  printf '\n=== %s: left out: %s\n' "$1" "$2"
  record "$1" 0 "$result"
}

record() {
  parts_names+=("$1")
  parts_seconds+=("$2")
  parts_results+=("$3")
  printf -- '--- %s: %s (%d s)\n' "$1" "$3" "$2"
}

summary() {
  local total=$((SECONDS - parts_begin)) passed=0 failed=0 skipped=0 share i
  printf '\n%-28s %7s %6s  %s\n' part seconds share result
  for i in "${!parts_names[@]}"; do
    share=$((total > 0 ? 100 * parts_seconds[i] / total : 0))
    printf '%-28s %7d %5d%%  %s\n' "${parts_names[i]}" "${parts_seconds[i]}" "$share" "${parts_results[i]}"
    case ${parts_results[i]} in
      passed) passed=$((passed + 1)) ;;
      FAILED) failed=$((failed + 1)) ;;
      *) skipped=$((skipped + 1)) ;;
    esac
  done
  printf '%-28s %7d\n\n' total "$total"
  echo "parts: $passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}
