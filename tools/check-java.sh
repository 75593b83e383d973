#!/bin/sh
# Stops set-up at once when there is no Java that Spark 4.2 can run on: 17 or 21, with the module jdk.incubator.vector.
set -eu

fail() {
    printf '%s\n' "Java check failed: $1" \
        "Spark 4.2 needs Java 17 or 21 with the module jdk.incubator.vector. To get one:" \
        "  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless" \
        "  Fedora, RHEL:    sudo dnf install java-17-openjdk-headless" \
        "  macOS:           brew install openjdk@17" \
        "then set JAVA_HOME to it, or put its bin folder on the PATH." >&2
    exit 1
}

if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
    [ -x "$java" ] || fail "JAVA_HOME is $JAVA_HOME, and there is no bin/java in it."
else
    java=$(command -v java) || fail "JAVA_HOME is not set and there is no java on the PATH."
fi

version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
case "$version" in
    17 | 21) ;;
    *) fail "$java is Java ${version:-of an unknown version}." ;;
esac
"$java" --list-modules 2>/dev/null | grep -q '^jdk.incubator.vector' ||
    fail "$java (Java $version) lacks the module jdk.incubator.vector."
