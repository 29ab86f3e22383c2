#include "stages/inference/infer.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::infer>(argc, argv); }
