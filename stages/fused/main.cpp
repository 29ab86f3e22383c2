#include "stages/fused/fused.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::fused>(argc, argv); }
