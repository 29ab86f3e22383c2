// `carousel recover`: makes a complete recording of one that lacks its end; executes the program that reads
// recordings.

#include <fmt/format.h>

#include <string>

#include "cli/options.hpp"
#include "core/executable_path.hpp"
#include "core/user_input.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

struct recover_arguments {
    std::string file, out;
};

command_action add_recover_command(const command_parts& p) {
    const auto a = std::make_shared<recover_arguments>();
    p.app.add_option("FILE", a->file, "The damaged recording, an .mcap file of any program")->required();
    p.app.add_option("--out", a->out, "The new file, which must not exist")->required()->type_name("FILE");
    p.app.footer(
        "\n"
        "Copies each complete message, also those of a chunk that the end of the file cuts, and writes the "
        "index that is "
        "missing. Prints what was lost. The damaged file stays as it is.\n"
        "\n"
        "Example:\n"
        "  carousel recover run.mcap --out whole.mcap");
    return [a](const common_words&, const cli_environment& env) -> int {
        const std::string program = program_of_ours("carousel-tape", executable_folder());
        exec_program({program, "recover", absolute_path(a->file).string(), absolute_path(a->out).string()},
                     env.out);
    };
}

}  // namespace

extern const command recover_command{"recover", "Make a complete recording of one that lacks its end",
                                     add_recover_command};

}  // namespace carousel::supervisor
