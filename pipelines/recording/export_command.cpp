// `carousel export`: pictures or a film of a recording. Executes `carousel run` with a pipeline of the player
// and the display, so that an exported file is what a run would write.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "cli/options.hpp"
#include "core/errors.hpp"
#include "core/executable_path.hpp"
#include "core/io.hpp"
#include "core/user_input.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

struct export_arguments {
    std::string file, kind = "mp4", out, ring;
    u64 first = 0, count = 0;
    f64 fps = 30;
};

/// A text as a TOML string.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

std::string pipeline_of(const export_arguments& a) {
    const std::string file = absolute_path(a.file).string();
    std::string out = a.out;
    if (out.empty()) {
        const std::string name = a.file.substr(0, a.file.rfind(".mcap"));
        out = a.kind == "mp4" ? name + ".mp4" : name + "_%05d." + a.kind;
    }
    return fmt::format(
        "[pipeline]\nname = \"export-{}\"\ndevice = \"cpu\"\n[[stage]]\nname = \"recording\"\nrun = "
        "\"carousel-replay\"\nfile = {}\nring = {}\nfirst = {}\ncount = {}\npixel_format = "
        "\"rgba8\"\n[[stage]]\nname = "
        "\"export\"\nrun = \"carousel-display\"\ninputs = [\"recording\"]\nout = {}\nfilm_fps = {}\n",
        ::getpid(), quoted(file), quoted(a.ring), a.first, a.count, quoted(absolute_path(out).string()),
        a.fps);
}

// The pipeline file is an open file without a name: it ends with the run.
[[noreturn]] void run_export(const export_arguments& a, const cli_environment& env) {
    if (!a.file.ends_with(".mcap"))
        throw config_error(fmt::format("{}: expected the name of an .mcap file", a.file));
    if (!a.out.empty() && !a.out.ends_with("." + a.kind))
        throw config_error(
            fmt::format("--out {}: --to {} writes files whose names end with .{}", a.out, a.kind, a.kind));
    const std::string text = pipeline_of(a);
    const int fd = ::memfd_create("carousel-export", 0);
    if (fd < 0 || !write_whole(fd, text.data(), text.size()))
        throw output_error(fmt::format("creating the pipeline of an export: {}", errno_text(errno)));
    exec_program(
        {executable_folder() + "/carousel", "run", fmt::format("/proc/self/fd/{}", fd), "--no-color"},
        env.out);
}

command_action add_export_command(const command_parts& p) {
    const auto a = std::make_shared<export_arguments>();
    p.app.add_option("FILE", a->file, "The recording, an .mcap file")->required();
    p.app.add_option("--to", a->kind, "mp4, png, jpg or npy [mp4]")
        ->check(CLI::IsMember({"mp4", "png", "jpg", "npy"}))
        ->type_name("KIND");
    p.app
        .add_option("--out", a->out,
                    "The film, or a pattern for pictures such as frame_%05d.png [next to the recording]")
        ->type_name("FILE");
    p.app.add_option("--ring", a->ring, "The ring, or the channel of another program's file [the only one]")
        ->type_name("NAME");
    p.app.add_option("--first", a->first, "Position of the first frame [0]")->type_name("N");
    p.app.add_option("--count", a->count, "Number of frames; 0: to the end [0]")->type_name("N");
    p.app.add_option("--fps", a->fps, "Frames per second of the film [30]")->type_name("HZ");
    p.app.footer(
        "\n"
        "Pictures of any format are converted to RGBA. The recording may lack its end, and it may be of "
        "another program "
        "(messages of foxglove.RawImage).\n"
        "\n"
        "Examples:\n"
        "  carousel export run.mcap --to mp4 --fps 60\n"
        "  carousel export run.mcap --to png --out 'pictures/frame_%05d.png' --ring fragment --count 10");
    return [a](const common_words&, const cli_environment& env) -> int { run_export(*a, env); };
}

}  // namespace

extern const command export_command{"export", "Write pictures or a film of a recording", add_export_command};

}  // namespace carousel::supervisor
