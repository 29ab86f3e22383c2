#include "stages/hosts/remote_stage.hpp"
int main(int argc, char** argv) {
    carousel::hosts::set_ucx_environment(argv);
    return carousel::stage_main<carousel::stages::remote_stage>(argc, argv);
}
