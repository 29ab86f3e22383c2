#include "stages/inference/answers.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::answers>(argc, argv); }
