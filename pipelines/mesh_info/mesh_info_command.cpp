// `carousel mesh-info FILE`.

#include <memory>

#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "mesh_info/mesh_info.hpp"
#include "stages/assets/scene_files.hpp"

namespace carousel::supervisor {
namespace {

command_action add_mesh_info_command(const command_parts& p) {
    const auto file = std::make_shared<std::string>();
    CLI::Option* option = p.app.add_option("FILE", *file, "An .obj, .gltf, .glb or .ply file")->required();
    p.offers[option] = offer_files(stages::scene_file_extensions());
    add_json(p);
    p.app.footer(
        "\nExample:\n  carousel mesh-info model.glb      what it contains, and what pictures do not show");
    return [file](const common_words& common, const cli_environment& env) {
        const nlohmann::json info = mesh_info(*file);
        env.out << (common.json ? info.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n"
                                : mesh_info_text(info));
        return exit_code::ok;
    };
}

}  // namespace

extern const command mesh_info_command{
    "mesh-info", "Print what a mesh file contains, and what pictures show of it", add_mesh_info_command};

}  // namespace carousel::supervisor
