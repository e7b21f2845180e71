#!/usr/bin/env bash
# Prints the JAVA_HOME of a Java that Spark can use (17 or later). Nothing else goes to stdout.
# Looks at JAVA_HOME, the PATH, then the usual places. As root on Debian or Ubuntu it installs one if there is none.
set -u

MINIMUM=17

# The home of the given java command, if it runs and is recent enough. Java itself is asked, so shims and links work.
home_of() {
    local line home="" version="" settings
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    while IFS= read -r line; do
        case $line in
            *" java.home = "*) home=${line#*= } ;;
            *" java.specification.version = "*) version=${line#*= } ;;
        esac
    done <<<"$settings"
    version=${version%%.*} # Java 8 calls itself 1.8
    [[ $home && $version =~ ^[0-9]+$ ]] && ((version >= MINIMUM)) && printf '%s\n' "$home"
}

look() {
    local java
    shopt -s nullglob
    local candidates=(
        ${JAVA_HOME:+"$JAVA_HOME/bin/java"}
        "$(type -P java)"
        ${CONDA_PREFIX:+"$CONDA_PREFIX/lib/jvm/bin/java"}
        /usr/lib/jvm/*17*/bin/java /usr/lib/jvm/*21*/bin/java /usr/lib/jvm/*/bin/java
        /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java
    )
    for java in "${candidates[@]}"; do
        [[ -x $java ]] && home_of "$java" && return 0
    done
    return 1
}

install() {
    [[ $EUID -eq 0 ]] && type -P apt-get >/dev/null || return 1
    echo "No Java $MINIMUM or later was found: installing one with apt-get." >&2
    local package output
    export DEBIAN_FRONTEND=noninteractive
    output=$(apt-get update -qq 2>&1) || printf '%s\n' "$output" >&2
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        output=$(apt-get install -y -qq --no-install-recommends "$package" 2>&1) && return 0
    done
    printf '%s\n' "$output" >&2
    return 1
}

look && exit 0
install && look && exit 0

say_how() {
    printf '%s\n' \
        "Spark needs Java $MINIMUM or later, and none was found in JAVA_HOME, on the PATH or in the usual places." \
        "Install one, then run the command again:" \
        "  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless" \
        "  Fedora           sudo dnf install -y java-21-openjdk-headless" \
        "  macOS            brew install openjdk@17" \
        "  conda            conda install -c conda-forge openjdk=17" \
        "If Java is somewhere else, say where: export JAVA_HOME=/path/to/java"
}
say_how >&2
exit 1
