// The main function of the programs of a link's stages. For each program, CMake passes the header and the
// class of the stage.
#include CAROUSEL_STAGE_HEADER

#include <cstdio>
#include <string_view>

#include "stages/hosts/ucx/transport.hpp"

int main(int argc, char** argv) {
    carousel::hosts::set_ucx_environment(argv);
    if (argc == 2 && std::string_view(argv[1]) == "--ucx")  // requested by `carousel doctor`
        return std::puts(carousel::hosts::ucx_json().c_str()) < 0 ? 1 : 0;
    return carousel::stage_main<CAROUSEL_STAGE>(argc, argv);
}
