// `carousel record`: a running pipeline into an MCAP file; becomes the program that does it.

#include <fmt/format.h>

#include <filesystem>

#include "cli/clients.hpp"
#include "cli/options.hpp"
#include "cli/record.hpp"
#include "runs/client.hpp"
#include "spec/own_programs.hpp"

namespace carousel::supervisor {
namespace {

struct record_arguments : client_arguments {
    std::string of, out, compression;
    bool latest = false;
};

[[noreturn]] void become_tape(const record_arguments& a, const cli_environment& env) {
    const std::string program = program_of_ours("carousel-tape", executable_folder());
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    if (!a.out.ends_with(".mcap"))
        throw config_error(fmt::format("--out {}: expected the name of an .mcap file", a.out));
    become({program, run.name, std::filesystem::absolute(a.out).string(), a.compression,
            a.latest ? "latest" : "port", a.of},
           env.out);
}

command_action add_record_command(const command_parts& p) {
    const auto a = std::make_shared<record_arguments>();
    add_client_options(p, *a);
    p.app.add_option("NAME", a->of, "A reading port of the pipeline file; with --latest a stage")->required();
    p.app.add_option("--out", a->out, "The file, an .mcap")->required()->type_name("FILE");
    p.app.add_flag("--latest", a->latest,
                   "The newest frames of a stage: holds nobody up, and counts the frames that it misses");
    p.app
        .add_option("--compression", a->compression,
                    "lz4, zstd or none [the first of them that was built in]")
        ->type_name("HOW");
    p.app.footer(
        "\nA port (run = \"port\", inputs = [...] in the pipeline file) gets every frame once, and the "
        "pipeline "
        "waits for the file. It ends with the run, or by Ctrl-C; `carousel-replay` plays the "
        "file.\n\nExamples:\n"
        "  carousel record archive --out run.mcap -p demo\n  carousel record fragment --latest --out "
        "some.mcap");
    return [a](const common_words&, const cli_environment& env) -> int {
        read_wait(*a);
        become_tape(*a, env);
    };
}

}  // namespace

const command record_command{"record", "Record a running pipeline, by a port or by its newest frames",
                             add_record_command};

}  // namespace carousel::supervisor
